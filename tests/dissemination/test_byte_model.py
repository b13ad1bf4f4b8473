import pytest

from tocsin.dissemination.byte_model import MAX_BYTES, ByteModel
from tocsin.model.errors import TocsinError


def test_a_message_is_a_header_and_its_fields() -> None:
    assert ByteModel(field=4, header=3).of(5) == 23


@pytest.mark.parametrize(("field", "header"), [(0, 0), (-8, 0), (MAX_BYTES + 1, 0), (8, -1), (8, 10**18)])
def test_bytes_that_cannot_be_added_up_are_refused(field: int, header: int) -> None:
    with pytest.raises(
        TocsinError, match=f"a field of {field} and a header of {header} bytes; give 1 to 1,000,000"
    ):
        ByteModel(field, header)
