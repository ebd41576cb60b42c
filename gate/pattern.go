package gate

import "regexp/syntax"

// PatternCost estimates how large RE2's program of a pattern becomes: it
// matches bytes, so that a class of many ranges of characters, repeated, is far
// more than the pattern's length shows (`\pL{600}`). Hostile patterns take
// seconds to compile; those that people write cost some hundreds.
func PatternCost(re *syntax.Regexp) int {
	const most = 1 << 30
	cost := 1
	switch re.Op {
	case syntax.OpLiteral:
		cost = len(re.Rune)
		if re.Flags&syntax.FoldCase != 0 {
			cost *= 2
		}
	case syntax.OpCharClass:
		cost = 2 * len(re.Rune) // two numbers a range, about four instructions each
		if n := len(re.Rune); n > 0 && re.Rune[n-1] > 0x7f {
			cost += 12
		}
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		cost = 12
	}
	for _, sub := range re.Sub {
		cost = min(cost+PatternCost(sub), most)
	}
	if re.Op == syntax.OpRepeat {
		times := max(re.Max, re.Min+1)
		if cost > most/max(times, 1) {
			return most
		}
		cost *= times
	}
	return cost
}

// MaxPatternCost is the most that a pattern may cost, matcher or search.
const MaxPatternCost = 10_000
