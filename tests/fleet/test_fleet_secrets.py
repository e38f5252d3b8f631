"""Secrets in `values` of a fleet file are refused, and not shown."""

import pytest

from shared.small_fleet import SMALL, problems, read

FIXED = "valueFrom: {secretKeyRef: {name: openai-api-key, key: OPENAI_API_KEY}}"


def fleet(service: str = "{}", gateway: str = "{}") -> str:
    return f"{SMALL}services: {{chat: {{values: {service}}}}}\nclusters: {{main: {{gateway: {{values: {gateway}}}}}}}\n"


@pytest.mark.parametrize(
    ("service", "path", "fix"),
    [
        ("{head: {env: {OPENAI_API_KEY: s3cret}}}", "head.env.OPENAI_API_KEY", FIXED),
        ("{workerGroups: {gpu: {env: {OPENAI_API_KEY: s3cret}, extraEnv: [{name: A, value: b}]}}}",
         "workerGroups.gpu.env.OPENAI_API_KEY",
         f"extraEnv: [{{name: A, value: b}}, {{name: OPENAI_API_KEY, {FIXED}}}]"),
        ("{head: {extraEnv: [{name: OPENAI_API_KEY, value: s3cret}]}}", "head.extraEnv[0]", FIXED),
        ("{serve: {applications: {chat: {models: {chat: {env: {OPENAI_API_KEY: s3cret}}}}}}}",
         "serve.applications.chat.models.chat.env.OPENAI_API_KEY", "remove `OPENAI_API_KEY`"),
        ("{head: {env: {OPENAI_API_KEY: [s3cret]}}}", "head.env.OPENAI_API_KEY", FIXED),
    ],
    ids=["head", "other-variables", "extra-env", "model", "wrong-type"],
)  # fmt: skip
def test_secret_in_a_variable_is_refused_without_showing_it(service: str, path: str, fix: str) -> None:
    (problem,) = problems(fleet(service))
    assert problem.path == f"services.chat.values.{path}"
    assert "is the name of a secret" in problem.message
    assert fix in str(problem)
    assert "s3cret" not in str(problem) + str(problem.as_dict())


def test_secret_in_a_variable_of_the_gateway_is_refused() -> None:
    (problem,) = problems(fleet(gateway="{extraEnv: [{name: PROXY_PASSWORD, value: s3cret}]}"))
    assert problem.path == "clusters.main.gateway.values.extraEnv[0]"


@pytest.mark.parametrize(
    "name",
    ["AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "PGPASSWORD", "DB_PASSWD", "OPENAI_APIKEY", "KEY", "CLIENT_SECRET",
     "GOOGLE_CREDENTIALS", "my.token"],
)  # fmt: skip
def test_name_of_a_secret_is_known(name: str) -> None:
    assert problems(fleet(f"{{head: {{env: {{{name}: s3cret}}}}}}"))


@pytest.mark.parametrize(
    "variable",
    ["TOKENIZERS_PARALLELISM: 'false'", "MAX_TOKENS: '5'", "HF_TOKEN_PATH: /token", "MONKEY: banana",
     "AWS_ACCESS_KEY_ID: AKIA", "USE_TOKEN: '1'", "A_TOKEN: $(B_TOKEN)", "A_TOKEN: ''"],
)  # fmt: skip
def test_other_variable_is_accepted(variable: str) -> None:
    assert read(fleet(f"{{head: {{env: {{{variable}}}}}}}"))


def test_url_with_a_password_in_values_is_refused_without_showing_it() -> None:
    (problem,) = problems(fleet("{head: {env: {HTTPS_PROXY: 'http://robot:s3cret@proxy:3128'}}}"))
    assert "the URL has a password" in problem.message
    assert "s3cret" not in str(problem)
