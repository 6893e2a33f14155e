"""The estimate of tokens is one from above, in every script, and not far above for English."""

# ruff: noqa: RUF001 - other scripts

from __future__ import annotations

import pytest

from anchord.core.token_counts import cut_field, field_tokens, token_upper_bound

MEASURED = [
    ("如何還原備份。資料庫的備份與還原，請參閱文件。", 600),
    ("データベースのバックアップを復元する方法については、文書を参照してください。", 700),
    ("วิธีกู้คืนข้อมูลสำรองของฐานข้อมูลโปรดดูเอกสารประกอบ", 1781),
    ("Как восстановить резервную копию базы данных, смотрите документацию.", 721),
    ("डेटाबेस का बैकअप कैसे पुनर्स्थापित करें, कृपया दस्तावेज़ देखें।", 1501),
    ("كيفية استعادة نسخة احتياطية من قاعدة البيانات، راجع الوثائق.", 1160),
    ("የውሂብ ጎታ ምትኬን እንዴት ወደነበረበት መመለስ እንደሚቻል ይመልከቱ።", 2320),
    ("🙂🙃🧑\u200d🚀🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", 681),
    ("x=[[(a,b),{c:d}],[]];y|=~(z<<3)^0xFF;", 540),
    ("aGVsbG8gd29ybGQgdGhpcyBpcyBh", 320),
    ("데이터베이스의 백업을 복원하는 방법은 문서를 참조하십시오.", 662),
    ("Πώς να επαναφέρετε ένα αντίγραφο ασφαλείας της βάσης δεδομένων.", 1441),
    ("כיצד לשחזר גיבוי של מסד הנתונים, ראה את התיעוד.", 821),
    ("როგორ აღვადგინოთ მონაცემთა ბაზის სარეზერვო ასლი.", 1261),
    ("Ինչպես վերականգնել տվյալների բազայի պահուստային պատճենը.", 2140),
    ("ডাটাবেস ব্যাকআপ কীভাবে পুনরুদ্ধার করবেন তা দেখুন।", 1740),
    ("தரவுத்தள காப்புப்பிரதியை எவ்வாறு மீட்டெடுப்பது என்பதைப் பார்க்கவும்.", 2620),
    ("ဒေတာဘေ့စ်အရန်ကူးယူမှုကို မည်သို့ပြန်ယူရမည်နည်း။", 981),
    ("របៀបស្ដារការបម្រុងទុកមូលដ្ឋានទិន្នន័យ", 2240),
    ("Cách khôi phục bản sao lưu cơ sở dữ liệu, vui lòng xem tài liệu.", 961),
    ("Jak przywrócić kopię zapasową bazy danych, źdźbło żółć.", 681),
    ("∀x∈ℝ: ∃y≥x ∧ ∑ᵢ αᵢ·βᵢ ≠ ∞", 521),
    ("┌──┬──┐│ a │ b │└──┴──┘", 441),
    ("→ ← ⇒ ✓ ✗ • … — “q”", 381),
    ("👩\u200d👩\u200d👧\u200d👦", 300),
]
"""A line of text, and the tokens of 20 such lines in a public tokenizer of 65,000 tokens that splits what it does not
know into bytes."""


@pytest.mark.parametrize(("line", "tokens"), MEASURED)
def test_no_script_has_more_tokens_than_are_counted(line: str, tokens: int) -> None:
    assert tokens <= token_upper_bound(f"{line} " * 20)


def test_english_is_counted_at_four_letters_a_token() -> None:
    assert token_upper_bound("one two three\n") == 1 + 1 + 2 + 1
    assert token_upper_bound("") == 0


@pytest.mark.parametrize("budget", [-1, 0, 5, 20, 60])
@pytest.mark.parametrize(("line", "_tokens"), MEASURED)
def test_a_text_is_cut_to_what_is_counted(line: str, _tokens: int, budget: int) -> None:
    cut = cut_field(f"{line} " * 20, budget)
    assert field_tokens(cut) <= max(0, budget)
