"""Secrets that are written in another form, go on in the next line, or stand in tables, pairs and lists."""

from __future__ import annotations

import base64

import pytest
from sources.secrets.examples import filled

from anchord.sources.secrets.redactor import redact

GITHUB = filled("ghp_{36}")
PASSWORD = filled("{5}!7{4}k2")
KEY = filled("{36}", "key") + "b7Zq"
HEX = filled("{32h}", "listed")
PHRASE = "seven herons under a tin bridge"
NUMBERS = ", ".join(str(ord(char)) for char in GITHUB)
HEX_NUMBERS = ", ".join(f"0x{ord(char):02x}" for char in GITHUB)
PASSWORD_NUMBERS = ", ".join(str(ord(char)) for char in PASSWORD)
IN_HEX = GITHUB.encode().hex()
IN_BASE32 = base64.b32encode(GITHUB.encode()).decode()
IN_UTF16 = base64.b64encode(f"$t='{GITHUB}'".encode("utf-16-le")).decode()
IN_BASE64 = base64.b64encode(PASSWORD.encode()).decode()
IN_OCTAL = "".join(f"\\{ord(char):03o}" for char in PASSWORD)
LETTERS = ", ".join(f"'{char}'" for char in PASSWORD)
OTP = base64.b32encode(HEX[:20].encode()).decode()
KEY_PAIR = ",".join(str(number * 37 % 251) for number in range(1, 65))
BLOCKS = "-".join(filled("{6d}", str(n)) for n in range(8))
WIF = "K" + filled("{51c}")
SEED = "otter vivid lunar gravel moment fabric onion relief salute trophy wagon zebra"
JWK = filled("{43w}", "jwk")

SECRETS = {
    "numbers": (f"const token = String.fromCharCode({NUMBERS})", NUMBERS),
    "numbers in hexadecimal": (f"var apiToken = []byte{{{HEX_NUMBERS}}}", HEX_NUMBERS),
    "numbers of a password": (f"password = bytes([{PASSWORD_NUMBERS}]).decode()", PASSWORD_NUMBERS),
    "hexadecimal": (f"echo {IN_HEX} | xxd -r -p", IN_HEX),
    "base32": (f"TOKEN=$(echo {IN_BASE32.rstrip('=')} | base32 -d)", IN_BASE32.rstrip("=")),
    "utf-16 for PowerShell": (f"powershell -EncodedCommand {IN_UTF16}", IN_UTF16),
    "base64 of a password": (f"DB_PASSWORD=$(echo {IN_BASE64} | base64 -d)", IN_BASE64),
    "said to be base64": (f"the db password as base64: {IN_BASE64}", IN_BASE64),
    "octal": (f"PASSWORD=$'{IN_OCTAL}'", IN_OCTAL),
    "letters that are joined": (f"const password = [{LETTERS}].join('')", LETTERS),
    "pieces that are joined": (f"t = ''.join(['{GITHUB[:17]}', '{GITHUB[17:]}'])", GITHUB[17:]),
    "key pair": (f"[{KEY_PAIR}]", KEY_PAIR),
    "after a backslash": (f"export T={GITHUB[:14]}\\\n{GITHUB[14:]}\nnext", GITHUB[14:]),
    "folded yaml": (f'a:\n  token: "{GITHUB[:14]}\\\n    {GITHUB[14:]}"\n', GITHUB[14:]),
    "literals in brackets": (f"PASSWORD = (\n    '{PASSWORD[:5]}'\n    '{PASSWORD[5:]}'\n)", PASSWORD[5:]),
    "literals in C": (f'char *deviceSecretKey =\n    "{HEX[:9]}"\n    "{HEX[9:]}";', HEX[9:]),
    "broken by a terminal": (f"OPENAI_API_KEY=sk-proj-{filled('{70w}')}\n{KEY}\n$ python", KEY),
    "markdown table": (f"| system | user | password |\n|---|---|---|\n| ci | me | {PASSWORD} |\n", PASSWORD),
    "later column": (f"Name | API key | Note\n--- | --- | ---\nprod | {KEY} | x\n", KEY),
    "html table": (f"<td>DB password</td><td>{PASSWORD}</td>", PASSWORD),
    "pair": (f"log in to https://x.example with me@x.example / {PASSWORD} now", PASSWORD),
    "changed": (f"the admin password from {PASSWORD}9 to {PASSWORD}", PASSWORD),
    "the new one": (f"the password was Lamp-Fjord-03 and the new one is {PASSWORD} -", PASSWORD),
    "on the next line": (f"Password for the elastic user (reset with x):\n  {KEY}\nkibana", KEY),
    "new value": (f"Password for [elastic] was reset.\nNew value: {KEY}\n", KEY),
    "quoted sentence": (f'The passphrase for the backup disk is "{PHRASE}" with spaces', PHRASE),
    "app password": ("the app password vkjy ugxr xoec cnjy in ~/.msmtprc", "vkjy ugxr xoec cnjy"),
    "app password in code": ("s.login('a@b.c', 'qvzk wmta hprx xjdo')  # app password", "qvzk wmta"),
    "codes after a question": ("backup codes, can you format them?\n\n1. 7043 1197\n2. 6783 7098\n", "6783 7098"),
    "norwegian": (f"Passordet til admin er {PASSWORD}, men", PASSWORD),
    "totp in code": (f"pyotp.TOTP('{OTP}')", OTP),
    "pin": ("the PIN is 47629456#, then ARM", "47629456"),
    "codes in lines": ("GitHub recovery codes for me\n\nba627-7362d\n449b1-ed4c0\n", "ba627-7362d"),
    "codes of digits": ("Google backup codes:\n\n1. 4470 6300\n2. 6490 7096\n", "6490 7096"),
    "words are counted": (f"Ledger backup, 12 words:\n{SEED}\n", SEED),
    "json web key": (f'{{"kty":"oct","alg":"HS256","k":"{JWK}"}}', JWK),
    "wallet": (f"private key (WIF): {WIF}", WIF),
    "bitlocker": (f"BitLocker\nRecovery Key: {BLOCKS}", BLOCKS),
    "twitter": (f"Client('{'A' * 21}DgBQ{filled('{70}')}')", filled("{70}")),
    "go's mysql": (f'sql.Open("mysql", "shop:{PASSWORD}@tcp(10.1.4.20:3306)/shop")', PASSWORD),
    "auth of a client": (f'Client(auth=("rzp_live_x", "{KEY}"))', KEY),
    "login of a client": (f"ftp.login('me', '{PASSWORD}')", PASSWORD),
    "redis": (f"maxmemory 512mb\nrequirepass {KEY}\n", KEY),
    "snmp": (f'createUser monitor SHA "{KEY}" AES "{PASSWORD}"', PASSWORD),
    "windows": ("slmgr /ipk V4C6G-CV947-DR9FP-82TD6-7FP27 fails", "V4C6G-CV947-DR9FP"),
    "unseal key": (f"Unseal Key 1: {KEY}=", KEY),
    "contains": (f"config/master.key contains {HEX} on both", HEX),
    "session": (f"ab -C 'PHPSESSID={HEX}' https://x.example/", HEX),
    "key beside a secret": (f'{{"key": "{KEY}", "secret": "{KEY}x"}}', f'"{KEY}"'),
    "pepper": (f'config.pepper = "{HEX}{HEX}"', HEX),
    "angle brackets": (f"define( 'AUTH_KEY',        '{KEY}<)(>{KEY}' );", KEY),
    "after a colour": (f"token \x1b[31m{GITHUB}\x1b[0m", GITHUB),
    "after a colour in code": (f'print("\\033[1;31m{GITHUB}\\033[0m")', GITHUB),
    "after a colour as shown": (f"^[[31m{GITHUB}^[[0m", GITHUB),
    "a control character inside": (f"{GITHUB[:9]}\x08{GITHUB[9:]}", GITHUB[9:]),
    "a colour inside": (f"{GITHUB[:9]}\x1b[31m{GITHUB[9:]}", GITHUB[9:]),
    "file name": (f"stripe_{filled('sk_live_{24}')}.json", filled("sk_live_{24}")),
}  # fmt: skip

LOOK_ALIKES = [
    f"sha256:{'0f1e2d3c' * 8}",
    "codes = [72, 101, 108, 108, 111, 44, 32, 119, 111, 114, 108, 100]",
    "String.fromCharCode(72, 101, 108, 108, 111, 44, 32, 119, 111, 114, 108, 100)",
    f"[{','.join(str(number % 7) for number in range(64))}]",
    "['red', 'green', 'blue'].join('')",
    "', '.join(['red', 'green', 'blue'])",
    "| name | type | password |\n|---|---|---|\n| user | string | required |\n| host | string | yes |\n",
    "| key | action |\n|---|---|\n| ctrl-x1 | closes the window |\n",
    "we changed the password from optional to required",
    "log in with your account / single sign-on",
    "the app password that will work with your mail",
    "the PIN is 4 digits long",
    "pin is 1234 on the header",
    "  password: {{ .Values.auth.password | b64enc | quote }}",
    "smtp.login('user', 'secret')",
    "supports AES ciphers and DES keys",
    "the passphrase is asked twice",
    'kty is "EC", and "x" is the coordinate',
    "the recovery key has eight blocks of six digits",
    "export PATH=/usr/bin:\\\n/usr/local/bin",
    "a\x08b \x1b[31mred\x1b[0m ^[[0K",
    "a folder of tokens: src/auth/password-reset-tokens",
]  # fmt: skip


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_in_another_form_is_found(name: str) -> None:
    text, secret = SECRETS[name]
    assert secret in text
    redacted = redact(text)
    assert secret not in redacted.text
    assert redacted.text.count("\n") == text.count("\n")
    assert redact(redacted.text).text == redacted.text


@pytest.mark.parametrize("text", LOOK_ALIKES)
def test_a_look_alike_stays(text: str) -> None:
    assert redact(text).text == text
