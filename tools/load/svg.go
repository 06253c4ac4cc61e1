package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// line is one of a picture: its values at equal distances.
type line struct {
	name   string
	values []float64
}

const (
	wide, high = 720, 260
	left, top  = 60, 30
)

var colours = []string{"#c0392b", "#2c6fbb"}

// picture draws lines over time as SVG.
func picture(title string, took time.Duration, lines ...line) string {
	most := 1.0
	for _, l := range lines {
		if len(l.values) > 0 {
			most = max(most, slices.Max(l.values))
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" `+
		"font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"+
		"<text x=\"%d\" y=\"18\">%s</text>\n",
		left+wide+20, top+high+30, left, title)
	for i := range 5 {
		y := float64(top+high) - float64(i)*high/4
		fmt.Fprintf(&b, `<path d="M%d %.1fH%d" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%.4g</text>`+"\n",
			left, y, left+wide, left-6, y+4, most*float64(i)/4)
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle">%.0f s</text>`+"\n",
			left+i*wide/4, top+high+18, took.Seconds()*float64(i)/4)
	}
	for n, l := range lines {
		points := make([]string, len(l.values))
		for i, v := range l.values {
			x := float64(left) + float64(wide)*float64(i+1)/float64(len(l.values))
			points[i] = fmt.Sprintf("%.1f,%.1f", x, float64(top+high)-v/most*high)
		}
		colour := colours[n%len(colours)]
		fmt.Fprintf(&b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="1.5"/>`+
			`<text x="%d" y="18" fill="%s">%s</text>`+"\n",
			strings.Join(points, " "), colour, left+wide-140+70*n, colour, l.name)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func write(folder, name, text string) error {
	return os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644) //nolint:gosec // a picture is no secret
}
