package calibrate

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The values that Newcombe printed for these shares (Statistics in Medicine 17,
// 1998, 857–872, table I, method 3).
func TestWilson(t *testing.T) {
	tests := []struct{ hits, n, low, high float64 }{
		{81, 263, 0.2553, 0.3662},
		{15, 148, 0.0624, 0.1605},
		{0, 20, 0, 0.1611},
		{1, 29, 0.0061, 0.1718},
		{20, 20, 0.8389, 1}, // 0 of 20, turned round
	}
	for _, test := range tests {
		low, high := wilson(test.hits/test.n, test.n)
		if !near(low, test.low, 5e-5) || !near(high, test.high, 5e-5) {
			t.Errorf("%v of %v: %.4f to %.4f, want %.4f to %.4f", test.hits, test.n, low, high, test.low, test.high)
		}
	}
}

// The values that Newcombe printed for these differences (Statistics in Medicine
// 17, 1998, 873–890, table II, method 10).
func TestYouden(t *testing.T) {
	tests := []struct{ caught, bad, wrongly, good, low, high float64 }{
		{56, 70, 48, 80, 0.0524, 0.3339},
		{9, 10, 3, 10, 0.1705, 0.8090},
		{6, 7, 2, 7, 0.0582, 0.8062},
		{5, 56, 0, 29, -0.0381, 0.1926},
		{10, 10, 0, 20, 0.6791, 1},
	}
	for _, test := range tests {
		rate := func(hits, n float64) *Estimate {
			low, high := wilson(hits/n, n)
			return &Estimate{hits / n, low, high}
		}
		j := youden(rate(test.caught, test.bad), rate(test.good-test.wrongly, test.good))
		if !near(j.Value, test.caught/test.bad-test.wrongly/test.good, 1e-9) || !near(j.Low, test.low, 5e-5) || !near(j.High, test.high, 5e-5) {
			t.Errorf("%+v: got %+v", test, j)
		}
	}
	if youden(nil, &Estimate{}) != nil || youden(&Estimate{}, nil) != nil {
		t.Error("J without both shares")
	}
}

// An area at the end of its interval is just z of its own standard errors away
// from what was measured, the error written as Hanley and McNeil do.
func TestAreaInterval(t *testing.T) {
	for _, test := range []struct{ area, bad, good float64 }{{0.8, 61, 59}, {0.5, 10, 40}, {0.97, 5, 7}, {0.2, 30, 30}} {
		low, high := aucInterval(test.area, test.bad, test.good)
		for _, end := range []float64{low, high} {
			q1, q2 := end/(2-end), 2*end*end/(1+end)
			n := (test.bad + test.good) / 2
			variance := (end*(1-end) + (n-1)*(q1-end*end) + (n-1)*(q2-end*end)) / (test.bad * test.good)
			if away := math.Abs(test.area-end) / math.Sqrt(variance); !near(away, 1.96, 1e-3) {
				t.Errorf("%+v: %.4f is %.4f errors away", test, end, away)
			}
		}
		if !(low < test.area && test.area < high) {
			t.Errorf("%+v: %.4f to %.4f", test, low, high)
		}
	}
	t.Run("a perfect area of few runs is no certainty", func(t *testing.T) {
		if low, high := aucInterval(1, 5, 5); low > 0.8 || high != 1 {
			t.Errorf("%.4f to %.4f", low, high)
		}
		if low, high := aucInterval(0, 5, 5); low != 0 || high < 0.2 {
			t.Errorf("%.4f to %.4f", low, high)
		}
	})
}

// Every interval but the trivial ones covers the truth about 95 times in 100: the
// shares of trials that are repeats of few runs too, which is why runs count.
func TestShareOfRepeatsCovers(t *testing.T) {
	const sets, runs, repeats, rate = 2000, 40, 5, 0.3
	chance := rand.New(rand.NewPCG(1, 2))
	covered := 0
	for range sets {
		var trials []Trial
		for run := range runs {
			rejected := chance.Float64() < rate // and it stays so: the repeats say nothing new
			for range repeats {
				trials = append(trials, Trial{Run: string(rune('A' + run)), Bad: true, Rejected: rejected})
			}
		}
		if e := Measure(trials).TPR; e.Low <= rate && rate <= e.High {
			covered++
		}
	}
	if covered < sets*93/100 {
		t.Errorf("covered %d of %d", covered, sets)
	}
}

func near(a, b, by float64) bool { return math.Abs(a-b) <= by }
