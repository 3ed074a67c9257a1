import unittest

from ledger import share, takings


class Ledger(unittest.TestCase):
    def test_takings(self):
        self.assertEqual(takings(14, 1850), 25900)

    def test_share(self):
        self.assertEqual(share(1, 3), 33)

    def test_share_of_nothing(self):
        self.assertEqual(share(0, 0), 0)


if __name__ == "__main__":
    unittest.main()
