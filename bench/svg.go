package main

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strconv"
	"strings"
)

// drawn is a bar with its numbers.
type drawn struct {
	bar
	median, least, most float64
	goal                float64 // of its aim
}

// Where things stand in a chart, in pixels.
const (
	width      = 820
	margin     = 24
	labelEnd   = 248 // labels end here
	plotStart  = 258 // and bars begin here,
	plotEnd    = 640 // and the longest could end here
	valueStart = 652
	// legendStart leaves room for wider letters than most fonts have.
	legendStart = 440
	headHeight  = 78
	groupRow    = 30
	barRow      = 22
	barHeight   = 12
	footHeight  = 62
)

// style has the colours of a light and of a dark page; the chart has its own ground,
// so that it is readable where a page's theme is not the reader's.
const style = `text{font-family:system-ui,-apple-system,"Segoe UI",sans-serif;font-size:12px;fill:#1f2328}` +
	`.ground{fill:#ffffff;stroke:#d1d9e0}.title{font-size:16px;font-weight:600}.group{font-weight:600}.quiet{fill:#59636e}.foot{font-size:11px}` +
	`.grid{stroke:#e3e7eb}.run{stroke:#1f2328;stroke-opacity:.75}.aim{stroke:#b42318;stroke-width:2}` +
	`.s0{fill:#3b76bf}.s1{fill:#c77c2e}.s2{fill:#3f9170}.s3{fill:#8664b0}` +
	`@media (prefers-color-scheme:dark){text{fill:#e6edf3}.ground{fill:#151b23;stroke:#3d444d}.quiet{fill:#9198a1}.grid{stroke:#2a313a}` +
	`.run{stroke:#e6edf3}.aim{stroke:#ff8a75}.s0{fill:#5b96de}.s1{fill:#d9944a}.s2{fill:#54ab88}.s3{fill:#a384cf}}`

// svg is the chart as a picture whose texts are texts. The same bars give the same
// bytes.
func (c chart) svg(bars []drawn, foot string) string {
	var b strings.Builder
	height := c.height(bars)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" aria-labelledby="title desc">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, "<title id=\"title\">%s</title>\n<desc id=\"desc\">%s</desc>\n<style>%s</style>\n", html.EscapeString(c.title), html.EscapeString(c.inWords(bars)), style)
	fmt.Fprintf(&b, "<rect class=\"ground\" x=\".5\" y=\".5\" width=\"%d\" height=\"%d\" rx=\"8\"/>\n", width-1, height-1)
	text(&b, margin, 32, "title", c.title)
	text(&b, margin, 54, "quiet", c.unit)
	legend(&b, 44)

	scale, step := scaleOf(bars)
	grid(&b, scale, step, height-footHeight)
	y, group := headHeight, ""
	for _, d := range bars {
		if d.group != group {
			group = d.group
			text(&b, margin, y+20, "group", group)
			y += groupRow
		}
		d.draw(&b, y, scale, c.colour(d.label))
		y += barRow
	}
	text(&b, margin, height-16, "quiet foot", foot)
	b.WriteString("</svg>\n")
	return b.String()
}

func (c chart) height(bars []drawn) int {
	groups := map[string]bool{}
	for _, d := range bars {
		groups[d.group] = true
	}
	return headHeight + len(groups)*groupRow + len(bars)*barRow + footHeight
}

// colour is the number of the label among the chart's labels.
func (c chart) colour(label string) int {
	var labels []string
	for _, b := range c.bars {
		if !slices.Contains(labels, b.label) {
			labels = append(labels, b.label)
		}
	}
	return slices.Index(labels, label)
}

// inWords is the chart for who does not see it.
func (c chart) inWords(bars []drawn) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Bars, in %s.", c.unit)
	group := ""
	for _, d := range bars {
		if d.group != group {
			group = d.group
			fmt.Fprintf(&b, " %s:", group)
		}
		fmt.Fprintf(&b, " %s %s", d.label, number(d.median))
		if !d.aim.none() {
			fmt.Fprintf(&b, " (aim %s)", d.aimText())
		}
		b.WriteString(";")
	}
	return strings.TrimSuffix(b.String(), ";") + "."
}

func (d drawn) aimText() string {
	if d.aim.most {
		return "≤ " + number(d.goal)
	}
	return "≥ " + number(d.goal)
}

// draw draws one bar: what the runs were at their median, the line from the least
// to the most, and the line of its aim.
func (d drawn) draw(b *strings.Builder, y int, scale float64, colour int) {
	middle := y + barRow/2
	fmt.Fprintf(b, "<text class=\"quiet\" x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", labelEnd, middle+4, html.EscapeString(d.label))
	fmt.Fprintf(b, "<rect class=\"s%d\" x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\" rx=\"1.5\"/>\n", colour, plotStart, middle-barHeight/2, max(d.median*scale, 1), barHeight)
	if d.least < d.most {
		from, to := plotStart+d.least*scale, plotStart+d.most*scale
		fmt.Fprintf(b, "<path class=\"run\" d=\"M%.1f %dv6m0-3H%.1fm0-3v6\" fill=\"none\"/>\n", from, middle-3, to)
	}
	says := number(d.median)
	if !d.aim.none() {
		at := plotStart + d.goal*scale
		fmt.Fprintf(b, "<path class=\"aim\" d=\"M%.1f %dv%d\"/>\n", at, y+1, barRow-2)
		fmt.Fprintf(b, "<text class=\"quiet\" x=\"%d\" y=\"%d\">aim %s</text>\n", valueStart+56, middle+4, d.aimText())
	}
	text(b, valueStart, middle+4, "group", says)
}

// grid draws the scale, and its numbers under it.
func grid(b *strings.Builder, scale, step float64, bottom int) {
	for i := 0; ; i++ {
		v := float64(i) * step
		x := plotStart + v*scale
		if x > plotEnd+1 {
			return
		}
		fmt.Fprintf(b, "<path class=\"grid\" d=\"M%.1f %dV%d\"/>\n", x, headHeight, bottom+4)
		fmt.Fprintf(b, "<text class=\"quiet foot\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", x, bottom+18, strconv.FormatFloat(math.Round(v*1000)/1000, 'f', -1, 64))
	}
}

// legend says what the lines are.
func legend(b *strings.Builder, y int) {
	fmt.Fprintf(b, "<path class=\"aim\" d=\"M%d %dv16\"/>\n", legendStart, y-2)
	text(b, legendStart+8, y+10, "quiet", "aim")
	fmt.Fprintf(b, "<path class=\"run\" d=\"M%d %dv6m0-3h24m0-3v6\" fill=\"none\"/>\n", legendStart+48, y+3)
	text(b, legendStart+80, y+10, "quiet", "the runs, least to most; bar: their median")
}

func text(b *strings.Builder, x, y int, class, says string) {
	fmt.Fprintf(b, "<text class=%q x=\"%d\" y=\"%d\">%s</text>\n", class, x, y, html.EscapeString(says))
}

// scaleOf is how many pixels one unit takes, and how many units lie between two
// lines of the grid, four to ten of them: 1, 2 or 5 times a power of ten.
func scaleOf(bars []drawn) (scale, step float64) {
	var longest float64
	for _, d := range bars {
		longest = max(longest, d.most, d.goal)
	}
	if longest == 0 {
		longest = 1
	}
	step = math.Pow(10, math.Floor(math.Log10(longest/4)))
	for _, times := range []float64{5, 2} {
		if longest/(step*times) >= 4 {
			step *= times
			break
		}
	}
	return (plotEnd - plotStart) / longest, step
}

// number has two or three digits that say something.
func number(v float64) string {
	switch {
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case v >= 0.1 || v == 0:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'f', 2-int(math.Floor(math.Log10(v)))-1, 64)
}
