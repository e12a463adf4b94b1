package plot

import (
	"bytes"
	"flag"
	"fmt"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

func week() []Day {
	var days []Day
	for i, n := range []int64{0, 1200, 98_700, 54_321, 3, 143_000, 77_000} {
		days = append(days, Day{Date: fmt.Sprintf("2026-11-%02d", 15+i), Tokens: n, MicroUSD: n * 3})
	}
	return days
}

func month(tokens int64) []Day {
	var days []Day
	for i := range 40 {
		days = append(days, Day{Date: fmt.Sprintf("2026-10-%02d", i%31+1), Tokens: tokens * int64(i%7)})
	}
	return days
}

// The pictures are the same everywhere: they are compared pixel by pixel.
func TestGolden(t *testing.T) {
	for name, days := range map[string][]Day{
		"week": week(), "month": month(41_000), "day": {{Date: "2026-11-21", Tokens: 12, MicroUSD: 120}}, "nothing": {{Date: "2026-11-21"}},
	} {
		got, err := PNG(days)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", name+".png")
		if *update {
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		a, err := png.Decode(bytes.NewReader(got))
		if err != nil {
			t.Fatal(err)
		}
		b, err := png.Decode(bytes.NewReader(want))
		if err != nil {
			t.Fatal(err)
		}
		if a.Bounds() != b.Bounds() {
			t.Errorf("%s is %v, want %v", name, a.Bounds(), b.Bounds())
			continue
		}
		differ := 0
		for y := range a.Bounds().Dy() {
			for x := range a.Bounds().Dx() {
				if a.At(x, y) != b.At(x, y) {
					differ++
				}
			}
		}
		if differ > 0 {
			t.Errorf("%s: %d pixels differ; look at the picture and use -update", name, differ)
		}
		if len(got) > 20_000 {
			t.Errorf("%s takes %d bytes", name, len(got))
		}
	}
}

func TestScale(t *testing.T) {
	for most, want := range map[int64]string{0: "1 1", 1: "1 1", 5: "1 5", 6: "2 3", 11: "5 3", 26: "10 3", 98_700: "20000 5", 143_000: "50000 3", math.MaxInt64 / 10: "200000000000000000 5"} {
		step, steps := scale(most)
		if got := fmt.Sprint(step, steps); got != want {
			t.Errorf("scale(%d) = %s, want %s", most, got, want)
		}
	}
}

func TestShort(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1k", 12_345: "12.3k", 4_500_000: "4.5M", 2_000_000_000: "2G"} {
		if got := short(n); got != want {
			t.Errorf("short(%d) = %s, want %s", n, got, want)
		}
	}
	for n, want := range map[int64]string{0: "$0.00", 99: "<$0.0001", 120: "$0.0001", 10_000: "$0.01", 12_340_000: "$12.34"} {
		if got := dollars(n); got != want {
			t.Errorf("dollars(%d) = %s, want %s", n, got, want)
		}
	}
}

// Nothing that was stored makes it fail, or draws beyond the picture.
func FuzzPNG(f *testing.F) {
	f.Add("2026-11-21", int64(5), int64(7), 3)
	f.Add("", int64(-1), int64(math.MinInt64), 40)
	f.Add("日本", int64(math.MaxInt64), int64(math.MaxInt64), 1)
	f.Fuzz(func(t *testing.T, date string, tokens, micro int64, n int) {
		days := make([]Day, max(min(n, 50), 0))
		for i := range days {
			days[i] = Day{Date: date, Tokens: tokens, MicroUSD: micro}
		}
		got, err := PNG(days)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := png.Decode(bytes.NewReader(got)); err != nil {
			t.Fatal(err)
		}
	})
}
