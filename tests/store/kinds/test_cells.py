"""Distances against another formula, and covers of circles against random points, at poles and the date line, too."""

import itertools
import math
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from store.kinds.cells import EARTH_KILOMETERS, FIRST_CELLS, LEVELS, Point, cover, first_cell
from tests.selection import examples

RUNS = 7
RADII = [0.1, 1.0, 10.0, 50.0, 300.0, 1_000.0, 2_000.0]
latitudes = st.one_of(st.floats(-90, 90), st.sampled_from([-90.0, -89.9995, 0.0, 35.2643896828, 45.0, 89.99, 90.0]))
longitudes = st.one_of(st.floats(-180, 179.999), st.sampled_from([-180.0, -135.0, -90.0, 0.0, 45.0, 90.0, 179.9995]))
points = st.builds(Point, latitudes, longitudes)
radii = st.one_of(st.floats(0.1, 2_000), st.sampled_from([0.0, *RADII]))


def angle(one: Point, other: Point) -> float:
    """The kilometers between two points by Vincenty's formula for a sphere, which is exact at all distances."""
    (a, b), (c, d) = [(math.radians(p.latitude), math.radians(p.longitude)) for p in (one, other)]
    across = math.hypot(
        math.cos(c) * math.sin(d - b), math.cos(a) * math.sin(c) - math.sin(a) * math.cos(c) * math.cos(d - b)
    )
    along = math.sin(a) * math.sin(c) + math.cos(a) * math.cos(c) * math.cos(d - b)
    return EARTH_KILOMETERS * math.atan2(across, along)


def beside(center: Point, bearing: float, kilometers: float) -> Point:
    """The point so far from a center in a direction."""
    way, north = kilometers / EARTH_KILOMETERS, math.radians(center.latitude)
    sine = math.sin(north) * math.cos(way) + math.cos(north) * math.sin(way) * math.cos(bearing)
    latitude = math.asin(max(-1.0, min(1.0, sine)))
    east = math.atan2(
        math.sin(bearing) * math.sin(way) * math.cos(north), math.cos(way) - math.sin(north) * math.sin(latitude)
    )
    found = Point.of(math.degrees(latitude), (center.longitude + math.degrees(east) + 180) % 360 - 180)
    assert found is not None
    return found


def anywhere(random: Random) -> Point:
    return Point(math.degrees(math.asin(random.uniform(-1, 1))), random.uniform(-180, 180))


@given(points, points)
@example(Point(90.0, 0.0), Point(-90.0, 0.0))
@example(Point(0.0, -180.0), Point(0.0, 179.9999))
def test_distances_are_those_of_another_formula(one, other):
    # The haversine loses digits between points on opposite sides of the Earth, a millimeter near them.
    assert one.kilometers(other) == pytest.approx(angle(one, other), rel=1e-9, abs=1e-3)
    assert one.kilometers(other) == pytest.approx(other.kilometers(one), rel=1e-12, abs=1e-9)


def test_longitudes_continue_around_the_earth():
    assert [Point.of(1, longitude) for longitude in (180, -180, 190, 359, 360, -190)] == [
        (1, -180), (1, -180), (1, -170), (1, -1), (1, 0), (1, 170)
    ]  # fmt: skip
    assert Point.of(41.25, -95.93779) == (41.25, -95.93779)


@pytest.mark.parametrize(
    ("latitude", "longitude"), [(90.01, 0), (-91, 0), (0, 361), (0, -400), (math.nan, 0), (0, math.nan), (0, math.inf)]
)
def test_what_is_no_point_is_refused(latitude, longitude):
    assert Point.of(latitude, longitude) is None


@given(points, radii, st.randoms(use_true_random=False))
def test_a_cover_holds_every_point_of_its_circle(center, kilometers, random):
    runs = cover(center, kilometers, RUNS)
    inside = [beside(center, random.uniform(0, 7), kilometers * random.random() ** 0.5) for _ in range(20)]
    reach = min(3 * kilometers + 1, 20_000)
    around = [beside(center, random.uniform(0, 7), random.uniform(0, reach)) for _ in range(30)]
    for one in [center, *inside, *around, *[beside(center, turn, kilometers) for turn in range(7)]]:
        distance = center.kilometers(one)
        cells = [cell for run in runs for cell in run if cell.first <= one.cell < cell.end]
        assert cells or distance > kilometers
        for cell in cells:
            assert not cell.is_inside or distance <= kilometers + 1e-6


@given(points, radii)
def test_a_cover_has_few_runs_each_in_one_cell_of_the_first_level(center, kilometers):
    runs = cover(center, kilometers, RUNS)
    assert 1 <= len(runs) <= RUNS
    cells = [cell for run in runs for cell in run]
    assert cells == sorted(cells, key=lambda cell: cell.first)
    assert all(one.end <= other.first for one, other in itertools.pairwise(cells))
    for run in runs:
        assert len({first_cell(cell.first) for cell in run}) == 1
        assert all(one.end == other.first for one, other in itertools.pairwise(run))
    single = cover(center, 2_000, 1)
    assert len({first_cell(run[0].first) for run in single}) == len(single) <= 5


def test_a_cover_is_not_much_larger_than_its_circle():
    random = Random(4)  # noqa: S311
    for kilometers in RADII:
        circle = (1 - math.cos(kilometers / EARTH_KILOMETERS)) / 2  # of the sphere, as numbers of cells of that
        covered = [
            sum([cell.end - cell.first for run in cover(anywhere(random), kilometers, RUNS) for cell in run])
            / (FIRST_CELLS << 2 * (LEVELS - 1))
            for _ in range(examples(12, 60))
        ]
        assert max(covered) < 4.5 * circle
        assert sum(covered) / len(covered) < 2.4 * circle
