"""The words that a text is about: the most frequent ones that are no stop words."""

from __future__ import annotations

import re
from collections import Counter
from itertools import filterfalse

_MAX_KEYWORDS = 5
_WORD = re.compile(r"[^\W\d_]\w{2,}")
"""Three characters or more, the first of them a letter."""

_STOP_WORDS = frozenset(
    """
    about above after again against all also although always among and another any anyone anything
    are aren around because been before being below between both but can cannot could couldn did
    didn does doesn doing don done down during each either else ever every few for from further get
    gets got had hadn has hasn have haven having her here hers herself him himself his how however
    into isn its itself just least less let many may maybe might more most much must myself neither
    never nor not nothing now off often once one only onto other others our ours ourselves out over
    own per perhaps quite rather really same shall she should shouldn since some someone something
    still such than that the their theirs them themselves then there therefore these they this
    those though through thus too toward towards under unless until upon very via was wasn way were
    weren what whatever when where whether which while who whole whom whose why will with within
    without won would wouldn yes yet you your yours yourself yourselves

    aber alle allem allen aller alles als also andere anderen auch auf aus bei beim bereits bis
    bist dabei dafür damit dann das dass dazu dein deine dem den denn der deren des deshalb dessen
    dich die dies diese diesem diesen dieser dieses dir doch dort durch ein eine einem einen einer
    eines einige etwa etwas euch euer für gegen gibt haben hatte hatten hier hinter ich ihm ihn
    ihnen ihr ihre ihrem ihren ihrer immer ins ist jede jedem jeden jeder jedes jedoch kann kein
    keine keinen können könnte machen mehr mein meine mich mir mit muss müssen nach nicht nichts
    noch nur oder ohne schon sehr sein seine seinem seinen seiner seit sich sie sind sollte sondern
    sowie über und uns unser unter viel vom von vor wann waren warum weil welche welcher wenn
    werden wie wieder will wir wird wurde wurden würde zum zur zwar zwischen

    alors après aucun aussi autre autres avant avec avoir avait beaucoup bien ceci cela celle celui
    ces cet cette ceux chaque chez comme dans depuis des deux doit donc dont elle elles encore
    entre est était étaient été être eux fait faire fois font ici ils jamais lequel les leur leurs
    lors lui mais même mes moi moins mon nos notre nous ont parce pas peu peut plus pour pourquoi
    quand que quel quelle quelles quels quelque qui quoi sans sera ses seulement soit sont sous sur
    tous tout toute toutes très trop une vers voici voilà vos votre vous

    alguna algunas alguno algunos algún allí ambos antes aquel aquella aquellos aquí así aunque
    bajo cada casi como con contra cual cuales cuando cuándo cuanto cómo del desde donde dónde
    durante ella ellas ellos entonces entre eran esa esas ese eso esos esta estaba están estar
    estas este esto estos está fue fueron había hace hacer hacia hasta las les los mas mientras
    mismo mucha muchas mucho muchos muy más nada ninguna ninguno nos nosotros nuestra nuestro otra
    otras otro otros para pero poco porque por puede pueden pues que qué quien quién según ser será
    sido siempre sino sobre soy sus también tampoco tan tanto tener tiene tienen toda todas todos
    tras una unas uno unos usted ustedes vosotros
    """.split()  # noqa: SIM905 - a list of four hundred words would not be easier to read
)
"""Words of English, German, French and Spanish that say nothing of a text's subject.

One set for all four, because a text can mix them. Words that have a meaning in another of these
languages are left out, such as `war`. Words of other languages are all kept.
"""


def keywords_of(text: str) -> tuple[str, ...]:
    """Return up to five words of a text in lower case, the most frequent first.

    Of equally frequent words the one that comes first in the text is first.
    """
    words = _WORD.findall(text.lower())
    counts = Counter(filterfalse(_STOP_WORDS.__contains__, words))
    return tuple(word for word, _ in counts.most_common(_MAX_KEYWORDS))
