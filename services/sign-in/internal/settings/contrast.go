package settings

import (
	"math"
	"strconv"
)

// minContrast is that of text (WCAG 2.2, 1.4.3).
const minContrast = 4.5

// The pages' backgrounds, as the style sheet has them.
var lightPage, darkPage = rgb("#ffffff"), rgb("#1c1f26")

// rgb reads #rrggbb.
func rgb(text string) (c [3]float64) {
	for i := range c {
		n, _ := strconv.ParseUint(text[1+2*i:3+2*i], 16, 8) // the form has been checked
		c[i] = float64(n) / 255
	}
	return c
}

// luminance is the relative luminance of a colour (WCAG 2.2).
func luminance(c [3]float64) float64 {
	weights, sum := [3]float64{0.2126, 0.7152, 0.0722}, 0.0
	for i, v := range c {
		if v <= 0.04045 {
			v /= 12.92
		} else {
			v = math.Pow((v+0.055)/1.055, 2.4)
		}
		sum += weights[i] * v
	}
	return sum
}

// contrast is the contrast ratio of two colours (WCAG 2.2), 1…21.
func contrast(a, b [3]float64) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// OnColour is the colour of text on a button of this colour: black or white, whichever can be read better.
func OnColour(colour string) string {
	c := rgb(colour)
	if contrast(c, rgb("#ffffff")) >= contrast(c, rgb("#000000")) {
		return "#ffffff"
	}
	return "#000000"
}
