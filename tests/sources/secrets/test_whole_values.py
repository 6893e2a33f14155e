"""A secret is replaced to its last character, whatever its length and however its source writes it."""

from __future__ import annotations

import pytest
from sources.secrets.examples import filled

from anchord.core.types import Document, Problem
from anchord.sources.secrets.documents import redact_document
from anchord.sources.secrets.redactor import redact

LONG = filled("a7{800b}Z9q")
WEB = filled("a7{2500w}Z9q")
PASSWORD = filled("{3}4*{3l}#{4}7k")
KEY = filled("{38}7k")
POSTMAN = filled("PMAK-{24h}-{34h}")
HEX = filled("{64h}")
CODES = [filled("{4l}7-{4l}9", str(number)) for number in range(6)]
_SPLIT = f"{POSTMAN[:30]}@{POSTMAN[30:]}"

LONG_VALUES = [
    f"refresh_token: {LONG}",
    f"refresh_token: {LONG}\nnext: 1",
    f'{{"refreshToken": "{LONG}", "scope": "all"}}',
    f'{{"a": "{{\\"refreshToken\\": \\"{LONG}\\"}}"}}',
    f"TOKEN={LONG}\\nDB_HOST=db",
    f"Authorization: Bearer {WEB}",
    f"Cookie: session={WEB}; theme=dark",
    f"https://bot:{WEB}@git.example.org/x.git",
    f"https://x.example.org/cb?token={LONG}&x=1",
    f"docker login -u me -p {LONG} registry.example.org",
    f"curl -u me:{LONG} https://x.example.org",
    f"machine api.example.org login me password {LONG}",
    f"db.example.org:5432:app:me:{WEB[:900]}",
    f"The password is {LONG} for now.",
    f"npg_{LONG.replace('+', '').replace('/', '')}",
]
LANGUAGES = [
    f"Das Kennwort für den Benutzer wartung lautet {PASSWORD} und gilt bis Freitag.",
    f"Le mot de passe est {PASSWORD}, tu peux lancer les tests.",
    f"La contraseña es {PASSWORD} y caduca en treinta días.",
    f"La contraseña: {PASSWORD}",
    f"La password è {PASSWORD}.",
    f"A senha do administrador é {PASSWORD}; por favor não a mudes.",
    f"Het wachtwoord is {PASSWORD} en de gebruikersnaam is bob.",
    f"Wachtwoord: {PASSWORD}",
    f"Hasło to {PASSWORD}",
    f"Hasło: {PASSWORD}",
    f"Пароль: {PASSWORD}",
    f"пароль — {PASSWORD}",
    f"パスワードは {PASSWORD} です。",
    f"パスワード\uff1a{PASSWORD}",
    f"密码是 {PASSWORD}。",
    f"密码: {PASSWORD}",
    f"비밀번호는 {PASSWORD} 입니다",
    f"비밀번호: {PASSWORD}",
    f"**Passwort:** {PASSWORD}",
    f"**Passwort: {PASSWORD}**",
]
CODE = [
    f'var jwtSecret = []byte("{KEY}")',
    f'SECRET_KEY = bytes("{KEY}", "utf-8")',
    f'SECRET_KEY = b"{KEY}"',
    f'const API_TOKEN: &[u8; 40] = b"{KEY}";',
    f'token: SecretStr = SecretStr("{KEY}")',
    f'var authKey = Encoding.UTF8.GetBytes("{KEY}");',
    f'DriverManager.getConnection("jdbc:oracle:thin:@ora1:1521/FIN", "batch", "{PASSWORD}");',
    f'new NetworkCredential("noreply@corp.example", "{PASSWORD}")',
    f'auth=HTTPBasicAuth("bob", "{PASSWORD}")',
    f'mysqli_connect("db", "bob", "{PASSWORD}")',
    f"<key>OAuthClientSecret</key>\n  <string>{KEY}</string>",
    f'sepolia: {{ accounts: ["0x{HEX}"] }}',
]
JOINED = [
    f'"{_SPLIT.replace("@", chr(34) + " + " + chr(34))}"',
    f"'{_SPLIT.replace('@', chr(39) + ' . ' + chr(39))}'",
    f'key = (\n    "{_SPLIT.replace("@", chr(34) + chr(10) + "    " + chr(34))}"\n)\nx = "end"',
    f'key = "{_SPLIT.replace("@", chr(34) + " +" + chr(10) + "  " + chr(34))}";\nlast line',
]
LEFT = [
    ".sk-folding-cube-loader-container-primary-v2 { animation: pulse 1s; }",
    'class="sk-ant-design-button-container-primary-v2"',
    f'Sentry.init({{ dsn: "https://{HEX[:32]}@o698055.ingest.sentry.io/7782805" }});',
    f"SENTRY_DSN=https://{HEX[:32]}@o698055.ingest.de.sentry.io/7782805",
    f"kind: SealedSecret\nspec:\n  encryptedData:\n    password: AgB{filled('{117b}')}=",
    f"kind: SealedSecret\nspec:\n  encryptedData:\n    refresh_token: AgB{filled('{797b}')}",
    'token: "Zugangsschlüssel"',
    'token: "Zugangsschluessel"',
    "パスワードはどこですか",
    "Het wachtwoord is verplicht voor iedereen.",
    "Пароль: обязательно",
    'new NetworkCredential("user", password)',
    'DriverManager.getConnection(url, "user", password)',
    'print("sk-" + name)\nlabel = "a" "b"',
    'password = ""\nhost = "db7"',
]


@pytest.mark.parametrize("text", LONG_VALUES, ids=lambda text: text[:24])
def test_a_long_value_is_replaced_to_its_end(text: str) -> None:
    redacted = redact(text).text
    assert "[REDACTED:" in redacted
    assert len(redacted) < 150, redacted
    assert "Z9q" not in redacted


@pytest.mark.parametrize("text", LANGUAGES)
def test_a_password_with_symbols_is_found_in_many_languages(text: str) -> None:
    redacted = redact(text).text
    assert [part for part in PASSWORD.replace("#", "*").split("*") if part in redacted] == []


@pytest.mark.parametrize("text", CODE)
def test_a_secret_in_a_wrapper_or_a_well_known_call_is_found(text: str) -> None:
    redacted = redact(text).text
    assert [value for value in (KEY, PASSWORD, HEX) if value in redacted] == []
    assert redacted.count("[REDACTED:") == 1


@pytest.mark.parametrize("text", JOINED)
def test_a_token_in_parts_of_a_string_is_found_whole(text: str) -> None:
    redacted = redact(text).text
    assert "[REDACTED:postman]" in redacted
    assert POSTMAN[:30] not in redacted
    assert POSTMAN[30:] not in redacted
    assert redacted.count("\n") == text.count("\n")
    assert redacted[-1] == text[-1]


def test_recovery_codes_behind_an_empty_line_are_found() -> None:
    codes = "\n".join(CODES)
    redacted = redact(
        f"These are my recovery codes, in this order:\n\n{codes}\n\nTwo are used."
    ).text
    assert [code for code in CODES if code in redacted] == []
    assert redacted.endswith("\n\nTwo are used.")


@pytest.mark.parametrize("text", LEFT)
def test_what_is_public_or_a_word_stays(text: str) -> None:
    assert redact(text).text == text


def test_a_plain_password_among_sealed_values_is_found() -> None:
    text = f"kind: SealedSecret\nspec:\n  encryptedData:\n    password: {KEY}\n"
    assert KEY not in redact(text).text


_PEM = (
    f"-----BEGIN OPENSSH PRIVATE KEY-----\n{filled('{64b}')}\n-----END OPENSSH PRIVATE KEY-----\n"
)
_NETRC = f"machine api.example.org login me password {KEY}\n"
NOTES = {
    "runbook": f"# Fetching\n\nPut this into your netrc before the build:\n\n    {_NETRC}\nThen run make.\n",
    "key in a fence": f"# Old notes\n\nThe key for the build box:\n\n```\n{_PEM}```\n\nRotate it soon.\n",
    "page": f"<html><body>\n<h1>Backup key</h1>\n<code>{filled('AGE-SECRET-KEY-1{58a}')}</code>\n</body></html>\n",
}
CREDENTIALS = {
    "netrc": f"# for the build\n{_NETRC}default login me password {KEY}\n",
    "netrc in lines": f"machine api.example.org\n  login me\n  password {KEY}\n",
    "key": _PEM,
    "key with a comment": f"# the key of the build box\n{_PEM}",
    "settings": f"# the two keys of the box\nAPI_TOKEN={KEY}\nDB_PASSWORD={PASSWORD}\n",
    "docker": f'{{"auths": {{"ghcr.io": {{"auth": "{KEY}"}}}}}}',
    "kubectl": f"apiVersion: v1\nkind: Config\nusers:\n- name: me\n  user:\n    token: {KEY}\n",
}


@pytest.mark.parametrize("name", NOTES)
def test_a_note_with_a_secret_is_indexed_without_it(name: str) -> None:
    document = redact_document(Document(text=NOTES[name], kind="text"))
    assert isinstance(document, Document)
    assert "[REDACTED:" in document.text


@pytest.mark.parametrize("name", CREDENTIALS)
def test_a_file_of_credentials_is_left_out(name: str) -> None:
    assert isinstance(redact_document(Document(text=CREDENTIALS[name], kind="text")), Problem)


def test_a_token_behind_a_very_long_one_of_its_rule_is_found() -> None:
    text = f"{filled('sk-{3000}')}\n{filled('sk-{48}')} {filled('xoxb-{2000d}-{24}')} {filled('xoxb-{12d}-{24}')}"
    redacted = redact(text).text
    assert redacted == "[REDACTED:openai]\n[REDACTED:openai] [REDACTED:slack] [REDACTED:slack]"
