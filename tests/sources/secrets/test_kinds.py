"""Kinds of secrets that a set by somebody who had not seen the rules showed as missed; the values are our own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anchord.sources.secrets.redactor import redact

WORDS = "cactus lemon robot tunnel velvet window yellow zebra anchor bridge candle desert".split()  # noqa: SIM905
NUMBERED = "\n".join(f"{number}. {word}" for number, word in enumerate(WORDS, 1))
FOLDED = "mail:\n  password: >-\n    kT4vQz81pLm\n    Xw90-rB7 end5Kq\n  host: a.lan\n"

SEED = "velvet orbit cactus humble rhythm spoil nephew drift anchor quantum bitter lemon"
HEADER = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9"
TEXTS = [
    ("  dns cloudflare 64Gnwnfeh8PFEzVMJ3OwZeKAibym07oi1b6Sdz1n\n", "64Gnwnfeh8PFEzVMJ3Ow"),
    ("jwt.sign({ sub: id }, 'nobody-guesses-the-otter-77', opts)", "nobody-guesses-the-otter-77"),
    ('ssh.connect("10.20.9.4", 22, "pi", "himbeerkuchen")', "himbeerkuchen"),
    ('SUDO_PASS: "apple,pear,plum"', "apple,pear,plum"),
    ("CREATE USER 'ro'@'%' IDENTIFIED BY 'only.reading.here';", "only.reading.here"),
    ("The door code is 7719#, alarm PIN 402816.", "7719#"),
    ("alarm PIN 402816.", "402816"),
    ("char pw[] = { 'T','y','t','t','e','b','a','r','7', 0 };", "'T','y','t','t'"),
    ("- unseal 1: g30o4ddtBB6ETt08IhZLhfIocj4TD0+jKt0hYlj23xMG", "g30o4ddtBB6ETt08"),
    ("seed: " + SEED, SEED),
    ('f = Fernet(b"ceKxTMPnFyWHJSyS5_Jfo5WGfu_6PG728eMyhkMVVz0=")', "ceKxTMPnFyWH"),
    ('<machineKey validationKey="79EAC7CDFBE43432F2F9DC81BE7A4538C94820A1" />', "79EAC7CDFBE4"),
    ('ENV["ADMIN_PASSWORD"] || "Maple-under-the-br1dge"', "Maple-under-the-br1dge"),
    ("if ($_POST['pass'] === 'maple1942') {", "maple1942"),
    ('password = "correctHarbourMaple"', "correctHarbourMaple"),
    ("le mot de passe est désormais « Maple2Chevre » (recette)", "Maple2Chevre"),
    ("пользователь Администратор, пароль Сосна_1812. Бэкап", "Сосна_1812"),
    ("De pincode is 6174 en de puk 30958842.", "6174"),
    ("De puk 30958842.", "30958842"),
    ("Larmets PIN-kod är 9035.", "9035"),
    ("API_TOKEN=3DmuzxJzd3YkuLG24N025DMmF5mPDgTIJjmx=\nhJgtHbes7fEe6f and more", "hJgtHbes7fEe6f"),
    (f'createClient("{HEADER}.eyJzdWIiOiJ4In0.Nuv-Led6rDmKKxXxXJuYb-mkNCHwwuROs")', "KKxXxXJuYb"),
    ('smtp.login("chess.club@gmail.com", "qgbd jrwt bunv fajh")', "qgbd jrwt bunv fajh"),
    ("kubeadm join 10.0.0.5:6443 --token lifudn.jholy5hfx3ggvgl0 \\", "jholy5hfx3ggvgl0"),
    ('anna : EAP "Harbour&Maple6"', "Harbour&Maple6"),
    (
        "Paste an API key from your profile: 4b54f7e98c2509aaa5d4eac0a55b06005f35b65a",
        "4b54f7e98c25",
    ),
    ("user           chess\npassword       Harbour&Maple_2019\n", "Harbour&Maple_2019"),
    ("Server=SQL02;User ID=app;Password=M4ple.Harbour;Encrypt=True", "M4ple.Harbour"),
    ("db1.lan:5432:shop:shop_ro:Harbour_31\n", "Harbour_31"),
    (
        "define('NONCE_SALT',  'Y9/*a5Xl>} G_)t3eONXBV0<T/F)XapQj12<luLGjCNok1;Tnr>VbT0xS4aU0tK&');",
        "Y9/*",
    ),
    ("active_record_encryption:\n  primary_key: xvdvRlepkz05VmAo7S4aBTdr6Zhnsa6w\n", "xvdvRlep"),
    ("La contraseña del correo compartido es Maple.Harbour31 y nada más", "Maple.Harbour31"),
    ("暗証番号\uff08会議室\uff09\uff1a7062", "7062"),
    ("PUK: 40972253", "40972253"),
    ("PWD          = Maple_Harbour_31\n", "Maple_Harbour_31"),
    ('env.put(Context.SECURITY_CREDENTIALS, "HarbourMaple31!");', "HarbourMaple31!"),
    ('ConvertTo-SecureString "a%7Krt04mfJSpwV" -AsPlainText -Force', "a%7Krt04mfJSpwV"),
    ("SECRET_KEY = 'k2x-9w!4%(q8)z@r1m#t7v'", "k2x-9w!4%(q8)z@r1m#t7v"),
    ("htpasswd -bB -c conf/.htpasswd anna vR8tKq2LmZ", "vR8tKq2LmZ"),
    ("The licence key is Q8RTX-2MKP7-V41BZ-9HWYC", "Q8RTX-2MKP7-V41BZ-9HWYC"),
    ("type the setup key ab3d k7qp 2mzx rt5w by hand", "ab3d k7qp 2mzx rt5w"),
    ('my passphrase is "copper lantern river 41 stone"', "copper lantern river 41 stone"),
    ("WLAN-Passwort im Keller ist Maple.Harbour.31", "Maple.Harbour.31"),
    ("wachtwoord van de kelder-pc: Maple&Harbour31", "Maple&Harbour31"),
    ("kullan\u0131c\u0131 ad\u0131 anna, şifresi Maple+Harbour31", "Maple+Harbour31"),
    ("passord: Maple+Harbour31", "Maple+Harbour31"),
    ("salasana: Maple+Harbour31", "Maple+Harbour31"),
    ("jelszó: Maple+Harbour31", "Maple+Harbour31"),
    ("парола: Maple+Harbour31", "Maple+Harbour31"),
    ("κωδικός: Maple+Harbour31", "Maple+Harbour31"),
    (f"Seed words, in order:\n{' '.join(WORDS)}\n", "robot tunnel"),
    (f"Mnemonic:\n\n{NUMBERED}\n", "12. desert"),
]
KEPT = [
    r'("password", r"(?i)password\s*[:=]\s*(\S+)")', "password: vault:secret/data/ledger-db#password",
    "[sudo] password for mk:\nmk@lap:~$ passwd", 'if key == "InvocationHttpParameters":',
    "the seeds: " + "12 of them", "PIN 13 is the LED", "the pin is 2048 wide",
    '"valueFrom": "arn:aws:secretsmanager:eu-central-1:123456789012:secret:prod/crm/db-Ab12Cd"',
    '"Smtp__Password": "@Microsoft.KeyVault(VaultName=kv-prod;SecretName=Smtp)"',
    "password = Config.Value1", "API key: see the page about keys", "the pin is on the board",
    'passwords["a-b"] and a-team', "the setup key that they used with some more text",
    "text = '%(name)s has no password'", "Seed words, in order: see below",
    "şifresi unutuldu", "passord for alle brukere", "parola d'ordine", "PWD          = os.getcwd()",
    "description: >-\n  a text about passwords\n  and more\n", 'put(TOKEN_NAME, "session")',
]  # fmt: skip


GITHUB = "ghp_aB3dE5gH7jK9mN1pQ3rS5tU7vW9xY1zA2bC4"
PARTS = [
    "aB3dE5gH7jK9",
    "-",
    "_",
    "=",
    ":",
    ". ",
    "\udcb4",
    "\udcff",
    "\ud800",
    "\xe9",
    "password",
    "token=",
]


@pytest.mark.parametrize(("text", "secret"), TEXTS)
def test_a_secret_of_this_kind_is_replaced(text: str, secret: str) -> None:
    assert secret in text
    assert secret not in redact(text).text


@pytest.mark.parametrize("beginning", ["dp.st.prd.", "SG.aB3dE5fG7hJ9kL1mN3pQ5r."])
def test_a_token_with_a_dot_behind_a_long_name_is_replaced(beginning: str) -> None:
    body = "k7Qx2mZ9vT4bN8cW3rY6pL1sD5fG0hJ2aE4uX7iO9qR"
    assert body not in redact(f"DOPPLER_TOKEN_VALUE={beginning}{body}\n").text


@pytest.mark.parametrize("before", ["m", "1", "tok_", "GITHUB", "\\u001b[31m"])
@pytest.mark.parametrize("prefix", ["ghp_", "glpat-", "xoxb-1234567890-1234567890-", "sk_live_"])
def test_a_token_with_a_distinctive_prefix_is_found_behind_a_letter_or_digit(
    before: str, prefix: str
) -> None:
    body = "aB3dE5gH7jK9mN1pQ3rS5tU7vW9xY1zA2bC4"
    clean = redact(f"out {before}{prefix}{body} end").text
    assert body not in clean
    assert clean.startswith(f"out {before}")
    assert clean.endswith(" end")


@pytest.mark.parametrize("before", ["key", "aws2", "id_"])
@pytest.mark.parametrize(
    "token",
    ["AKIA4XV7QK2MJ6TN5WRB", "AIzaSyB7k2Qx9mZ4vT1bN8cW3rY6pL5sD0fG2hJ", "LTAI5tKq8Zx2mV4bN7cW3rY9"],
)
def test_a_key_id_is_found_behind_a_small_letter_or_digit(before: str, token: str) -> None:
    assert token not in redact(f"out {before}{token} end").text
    base32 = f"MZXW6YTBOI{token}"
    assert redact(f"sum {base32} of").text == f"sum {base32} of"


@pytest.mark.parametrize("text", KEPT)
def test_what_looks_like_one_stays(text: str) -> None:
    assert redact(text).text == text


def test_all_lines_of_a_folded_value_are_replaced_and_the_next_key_stays() -> None:
    clean = redact(FOLDED).text
    assert all(part not in clean for part in ("kT4v", "Xw90", "end5Kq"))
    assert "host: a.lan" in clean
    assert clean.count("\n") == FOLDED.count("\n")


def test_every_line_of_a_token_that_was_wrapped_is_replaced() -> None:
    lines = [
        "Authorization: Bearer eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJndWVzdC0xMTQ",
        "iLCJhdWQiOiJkYXRhcG9ydGFsIiwiaWF0IjoxNzI4MDAwMDAwLCJleHAiOjE3NTk1",
        "MzYwMDB9.bJnSQ_c8-6jR4tg_BQEFu22nZtwdFjxO8WzVOGQGDfs",
    ]
    clean = redact("\n".join([*lines, "", "How do I use it?"])).text
    assert not [line for line in lines if line[-30:] in clean]
    assert clean.endswith("\n\nHow do I use it?")


def test_what_follows_a_numbered_seed_phrase_stays() -> None:
    assert "checked by anna" in redact(f"Mnemonic:\n{NUMBERED}\n\nchecked by anna in may\n").text


@given(st.lists(st.sampled_from(PARTS), max_size=30).map("".join))
def test_names_with_surrogates_are_searched_like_any_text(text: str) -> None:
    assert GITHUB not in redact(f"{text} {GITHUB} {text}").text
