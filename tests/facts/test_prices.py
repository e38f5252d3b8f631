"""Prices of GPUs by provider."""

from rayhelm.facts import load_catalog

FACTS = load_catalog()


def test_each_price_is_of_a_gpu_of_the_catalog_and_names_its_source() -> None:
    for file, provider in FACTS.prices.providers.items():
        assert provider.id == file
        for gpu, kinds in provider.prices.items():
            assert FACTS.gpu(gpu).id == gpu
            found = [price for price in (kinds.on_demand, kinds.spot) if price]
            assert found, (file, gpu)
            assert all(price.source for price in found)


def test_first_price_of_a_gpu_is_that_of_aws_and_names_its_provider() -> None:
    price = FACTS.gpu("H100-SXM-80GB").price
    assert (price.on_demand, price.on_demand_provider) == (6.88, "AWS")
    assert FACTS.gpu("H100-SXM-80GB/1g.10gb").price == price
    other = FACTS.prices.find("H100-SXM-80GB", "lambda")
    assert (other.on_demand, other.on_demand_provider, other.spot) == (3.99, "Lambda", None)
    assert FACTS.prices.find("H100-SXM-80GB", "spheron").on_demand is None
