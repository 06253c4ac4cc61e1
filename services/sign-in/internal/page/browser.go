package page

import "strings"

// BrowserName is a short name for a User-Agent, good enough for people to recognize their browsers; empty if it is none
// that is known.
func BrowserName(agent string) string {
	browser := firstOf(agent, "Edg/", "Edge", "OPR/", "Opera", "Firefox/", "Firefox", "Chrome/", "Chrome", "Safari/", "Safari")
	system := firstOf(agent, "iPhone", "iPhone", "iPad", "iPad", "Android", "Android", "Windows", "Windows", "Mac OS X", "macOS",
		"Linux", "Linux")
	return strings.Trim(browser+" · "+system, " ·")
}

// firstOf takes pairs of a sign and a name, and returns the name of the first sign that the text has.
func firstOf(text string, pairs ...string) string {
	for i := 0; i < len(pairs); i += 2 {
		if strings.Contains(text, pairs[i]) {
			return pairs[i+1]
		}
	}
	return ""
}
