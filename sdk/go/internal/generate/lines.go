package main

import (
	"go/format"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// columns is how long a line may be; a tab takes four.
const columns = 120

var (
	longComment = regexp.MustCompile(`^(\t*// )(\S.*)$`)
	longCall    = regexp.MustCompile(`^(func \(c \*Client\) \w+\()([^()]+)(\).*\{)$`)
	longMembers = regexp.MustCompile(`^(\t+)(\w+: .*,)$`)
	memberStart = regexp.MustCompile(`, (\w+: )`)
)

// fit breaks the lines that are too long: comments between words, a method's signature after its parenthesis, and the
// members of a literal between each other. Other lines stay, such as the fields of structs.
func fit(source []byte) ([]byte, error) {
	var out []string
	for _, line := range strings.Split(string(source), "\n") {
		out = append(out, broken(line)...)
	}
	return format.Source([]byte(strings.Join(out, "\n")))
}

func broken(line string) []string {
	if width(line) <= columns {
		return []string{line}
	}
	if match := longComment.FindStringSubmatch(line); match != nil {
		return fill(match[1], strings.Fields(match[2]))
	}
	if match := longCall.FindStringSubmatch(line); match != nil {
		parameters := strings.ReplaceAll(match[2], ", ", ",\n") + ","
		return slices.Concat(match[1:2], fill("\t", strings.Split(parameters, "\n")), match[3:])
	}
	if match := longMembers.FindStringSubmatch(line); match != nil {
		members := memberStart.ReplaceAllString(match[2], ",\n$1")
		return fill(match[1], strings.Split(members, "\n"))
	}
	return []string{line}
}

// fill puts as many parts into each line as it holds.
func fill(indent string, parts []string) []string {
	lines := []string{indent + parts[0]}
	for _, part := range parts[1:] {
		last := &lines[len(lines)-1]
		if longer := *last + " " + part; width(longer) <= columns {
			*last = longer
		} else {
			lines = append(lines, indent+part)
		}
	}
	return lines
}

func width(line string) int { return utf8.RuneCountInString(line) + 3*strings.Count(line, "\t") }
