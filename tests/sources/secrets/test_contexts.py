"""Secrets without a form of their own: what is around them gives them away."""

from __future__ import annotations

import base64
from urllib.parse import quote

import pytest
from sources.secrets.examples import filled

from anchord.sources.secrets.redactor import redact

PASSWORD = filled("{5}7{4}k2")
KEY = filled("{36}", "key") + "b7Zq"
HEX = filled("{32h}")
BASIC = base64.b64encode(f"deploy:{PASSWORD}".encode()).decode()
WORDS, PHRASE = "swordfishes", "correct-horse-battery-staple"
SYMBOLS = "q+vb%5p@m9azuu$--#w_w%*4(acm$q"
GITHUB = filled("ghp_{36}")
DATA_LINES = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\n"

CONTEXTS = {
    "aws credentials": f"[default]\naws_secret_access_key = {KEY}\n",
    "yaml": f"database:\n  password: {PASSWORD}\n  host: db\n",
    "yaml in quotes": f"db_password: '{PASSWORD}'",
    "yaml block": f"token: >-\n  {KEY}\n",
    "netrc": f"machine api.example.org\n  login me\n  password {PASSWORD}\n",
    "netrc in a line": f"machine api.example.org login me password {PASSWORD}",
    "netrc of words": f"machine api.example.org login me password {WORDS}",
    "pass phrase": f"password: {PHRASE}",
    "symbols": f"SECRET_KEY = '{SYMBOLS}'",
    "env": f"STRAPI_TOKEN={KEY}",
    "exported": f"export DATABASE_PASSWORD='{PASSWORD}'",
    "dockerfile": f"ENV MYSQL_PASSWORD {PASSWORD}",
    "toml": f'[auth]\nclient_secret = "{KEY}"\n',
    "json": f'{{"apiKey":"{KEY}"}}',
    "json in json": f'{{"text":"{{\\"apiKey\\": \\"{KEY}\\"}}"}}',
    "name and value": f'{{"name": "SMTP_PASSWORD", "value": "{PASSWORD}"}}',
    "kubernetes env": f"        - name: SMTP_PASSWORD\n          value: {PASSWORD}\n",
    "xml": f"<password>{PASSWORD}</password>",
    "xml attribute": f'<add key="Password" value="{PASSWORD}" />',
    "properties": f"spring.mail.password={PASSWORD}",
    "ruby": f":secret_key_base => '{HEX}{HEX}'",
    "typescript": f'const apiKey: string = "{KEY}";',
    "rust": f'const API_TOKEN: &str = "{KEY}";',
    "python call": f'client.login(user, password="{PASSWORD}")',
    "setter": f'config.setPassword("{PASSWORD}");',
    "header": f"curl -H 'x-api-key: {KEY}' https://api.example.org",
    "header in code": f'request.header("X-Auth-Token", "{KEY}")',
    "bearer": f"Authorization: Bearer {KEY}",
    "own scheme": f"Authorization: SSWS {KEY}",
    "basic": f"Authorization: Basic {BASIC}",
    "curl -u": f"curl -u admin:{PASSWORD} https://ci.example.org",
    "curl --user": f"curl -sS --user 'admin:{PASSWORD}' https://ci.example.org",
    "redis": f"redis://:{PASSWORD}@cache:6379/0",
    "url": f"https://bot:{PASSWORD}@git.example.org/x.git",
    "query": f"GET /v1/me?access_token={KEY}&x=1",
    "azure storage": f"AccountName=a;AccountKey={filled('{86b}')}==;EndpointSuffix=core.windows.net",
    "azure sas": f"https://a.blob.core.windows.net/c?sv=2024&sig={quote(filled('{43b}') + '=', safe='')}",
    "connection string": f"Server=db;Database=app;User Id=sa;Password={PASSWORD};",
    "mysql": f"mysql -u root -p{PASSWORD} app",
    "sshpass": f"sshpass -p '{PASSWORD}' ssh me@host",
    "docker login": f"docker login -u me -p {PASSWORD} registry.example.org",
    "pgpass": f"db.example.org:5432:app:me:{PASSWORD}",
    "docker config": f'{{"auths":{{"ghcr.io":{{"auth":"{BASIC}"}}}}}}',
    "kubernetes secret": f"{DATA_LINES}data:\n  login: {base64.b64encode(PASSWORD.encode()).decode()}\n",
    "cookie": f"Cookie: theme=dark; session_id={HEX}",
    "wireguard": f"[Interface]\nPrivateKey = {filled('{43b}')}=\n",
    "prompt": f"AWS Secret Access Key [None]: {KEY}",
    "name of two words": f"the datadog api key is {HEX}",
    "sas without url": f"SharedAccessSignature sr=x&sig={quote(KEY, safe='')}&se=1",
    "sqlcmd": f"sqlcmd -S db -U sa -P {PASSWORD}",
    "said": f"the staging password is {PASSWORD} by the way",
    "option": f"tool deploy --token {KEY}",
    "zero width": f"{GITHUB[:12]}\u200b{GITHUB[12:]}",
    "soft hyphens": "\u00ad".join(GITHUB[place : place + 8] for place in range(0, 40, 8)),
    "percent": f"https://x.example.org/?next=https%3A%2F%2Fme%3A{GITHUB}%40x.org",
    "percent, every letter": "".join(f"%{ord(letter):02X}" for letter in GITHUB),
    "base64": f"echo {base64.b64encode(f'export TOKEN={GITHUB}'.encode()).decode()} | base64 -d",
    "unicode escapes": f'"password\\u003d{PASSWORD}"',
    "html": f"&lt;password&gt;{PASSWORD}&lt;/password&gt;",
}  # fmt: skip
VALUES = (WORDS, PHRASE, SYMBOLS, PASSWORD, KEY, HEX, BASIC, GITHUB)

LOOK_ALIKES = [
    "password: ${DB_PASSWORD}",
    "password: {{ vault_password }}",
    "password: !vault |",
    "password = settings.DATABASE_PASSWORD",
    "password = getpass.getpass()",
    'password = os.environ["PASSWORD"]',
    'password: "string"',
    "password: Optional[str] = None",
    "private_key: Ed25519PrivateKey",
    'print(f"password={password!r}")',
    "curl -u admin:{PASSWORD2} https://example.org",
    "api_key: YOUR_API_KEY",
    "API_KEY=replace-me",
    "token: ****************",
    "secret: <redacted>",
    "secret: [REDACTED:github]",
    "aws_access_key_id = AKIAIOSFODNN7EXAMPLE",
    "token = jwt.encode(payload, key)",
    "const token = req.headers['x-access-token'];",
    "token: ${{ secrets.NPM_TOKEN }}",
    "secretName: database-credentials",
    "key: feature-flags-v2",
    "cache_key = f'{user}:{page}'",
    "primary_key=True",
    '"integrity": "sha512-' + filled("{86b}") + '=="',
    "    --hash=sha256:" + filled("{64h}"),
    "resolved: https://registry.npmjs.org/a/-/a-1.0.0.tgz#" + filled("{40h}"),
    "commit " + filled("{40h}"),
    "uid: 8c1f6a5e-2b1d-4a57-9f5e-3f6f1f0f3a11",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + filled("{43b}") + " me@host",
    "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
    "curl -u user:password https://example.org",
    "https://user:password@example.org",
    "docker run -u 1000:1000 image",
    "mysql -u root -p app",
    "nextPageToken: CAUQAA" + filled("{20}"),
    "The token count is 16384 for this model.",
    "max_tokens: 100000",
    "Bearer authentication is required.",
    "Basic authentication",
    "login: me password: PASSWORD",
    "pip install sk-learn-extra-package-with-a-long-name",
    "data:image/png;base64," + filled("{120b}"),
    "1:1 meeting at 10:30:00",
    "from anchord.sources.secrets.redactor import redact",
]  # fmt: skip


@pytest.mark.parametrize("context", CONTEXTS)
def test_a_secret_is_found_by_what_is_around_it(context: str) -> None:
    text = CONTEXTS[context]
    redacted = redact(text)
    assert redacted.counts_by_kind
    assert [value for value in VALUES if value in redacted.text] == []
    assert redacted.text.count("\n") == text.count("\n")


@pytest.mark.parametrize("text", LOOK_ALIKES)
def test_a_look_alike_stays(text: str) -> None:
    assert redact(text).text == text


@pytest.mark.parametrize("context", CONTEXTS)
def test_redacting_again_changes_nothing(context: str) -> None:
    once = redact(CONTEXTS[context]).text
    assert redact(once).text == once


def test_a_zero_width_character_that_hides_no_secret_stays() -> None:
    text = "zero\u200bwidth and 100%25 of it"
    assert redact(text).text == text


def test_a_private_key_leaves_as_many_lines() -> None:
    body = "\n".join(filled("{64b}", str(line)) for line in range(4))
    text = f"before\n-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\nafter\n"
    redacted = redact(text).text
    assert redacted == "before\n[REDACTED:private-key]" + "\n" * 6 + "after\n"


def test_a_private_key_without_its_end_goes_as_far_as_key_material() -> None:
    body = "\n".join(filled("{64b}", str(line)) for line in range(4))
    redacted = redact(f"-----BEGIN RSA PRIVATE KEY-----\n{body}\n# That was (almost) all.").text
    assert body[:20] not in redacted
    assert redacted.endswith("# That was (almost) all.")


def test_a_mark_is_no_part_of_another_secret() -> None:
    body = filled("{64b}")
    once = redact(f"https://registry.-----BEGIN PRIVATE KEY-----{body} me@host").text
    assert once == "https://registry.[REDACTED:private-key] me@host"
    assert redact(once).text == once
