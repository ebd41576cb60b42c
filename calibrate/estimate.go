package calibrate

import "math"

// Estimate is a number with its interval of 95 %.
type Estimate struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// z is the normal deviate of a two-sided interval of 95 %.
const z = 1.959963984540054

// share is how many of the trials that are in are hit; nil where none is in.
func share(trials []Trial, in, hit func(*Trial) bool) *Estimate {
	weights := map[string]float64{} // trials of each run
	hits := 0.0
	for i := range trials {
		if t := &trials[i]; in(t) {
			weights[t.Run]++
			if hit(t) {
				hits++
			}
		}
	}
	n, sum := effective(weights)
	if n == 0 {
		return nil
	}
	low, high := wilson(hits/sum, n)
	return &Estimate{hits / sum, low, high}
}

// effective is how many observations runs of these weights are worth (Kish), and
// the sum of the weights.
func effective(weights map[string]float64) (n, sum float64) {
	squares := 0.0
	for _, w := range weights {
		sum += w
		squares += w * w
	}
	if squares == 0 {
		return 0, 0
	}
	return sum * sum / squares, sum
}

// wilson is the score interval of a share p of n observations.
func wilson(p, n float64) (low, high float64) {
	middle := (p + z*z/(2*n)) / (1 + z*z/n)
	half := z / (1 + z*z/n) * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	low, high = max(middle-half, 0), min(middle+half, 1)
	// What rounding leaves at the ends is no part of the interval's law.
	if p == 0 {
		low = 0
	}
	if p == 1 {
		high = 1
	}
	return low, high
}

// f1 turns the share TP/(TP+FP+FN) into 2TP/(2TP+FP+FN), which grows with it.
func (e *Estimate) f1() *Estimate {
	if e == nil {
		return nil
	}
	of := func(s float64) float64 { return 2 * s / (1 + s) }
	return &Estimate{of(e.Value), of(e.Low), of(e.High)}
}

// youden is TPR + TNR − 1 with Newcombe's interval of a difference of two shares.
func youden(tpr, tnr *Estimate) *Estimate {
	if tpr == nil || tnr == nil {
		return nil
	}
	j := tpr.Value + tnr.Value - 1
	return &Estimate{j,
		j - math.Hypot(tpr.Value-tpr.Low, tnr.Value-tnr.Low),
		j + math.Hypot(tpr.High-tpr.Value, tnr.High-tnr.Value)}
}

// aucInterval is Newcombe's fifth method: every area that is less than z standard
// errors away, the error being that of the area itself (Hanley and McNeil, with
// the mean of both numbers for each).
func aucInterval(area, bad, good float64) (low, high float64) {
	spread := func(a float64) float64 {
		more := (bad+good)/2 - 1
		return z * math.Sqrt(a*(1-a)*(1+more*((1-a)/(2-a)+a/(1+a)))/(bad*good))
	}
	low = crossing(0, area, func(a float64) bool { return area-a > spread(a) })
	high = crossing(1, area, func(a float64) bool { return a-area > spread(a) })
	return low, high
}

// crossing is where between out and in a point stops being outside.
func crossing(out, in float64, outside func(float64) bool) float64 {
	for range 60 { // halves until a float64 has no more digits
		if middle := (out + in) / 2; outside(middle) {
			out = middle
		} else {
			in = middle
		}
	}
	return (out + in) / 2
}
