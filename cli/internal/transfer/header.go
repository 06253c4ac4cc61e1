package transfer

import (
	"cmp"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"

	"github.com/idplatform/idplatform/cli/internal/failure"
	"github.com/idplatform/idplatform/cli/internal/output"
)

// reasonColumn is what the file of failures has beside the columns of the imported file. An import ignores it.
const reasonColumn = "reason"

// target is where the value of a column goes.
type target struct {
	column column
	path   []string // within an extra column
	ignore bool
}

// layout knows the columns of a kind, and the names that a file has for them.
type layout struct {
	columns []column
	renamed map[string]string // from --map; "" leaves the column out
	fixed   map[string]string // from --set
}

// newLayout reads --map and --set.
func newLayout(columns []column, renames, fixed []string) (*layout, error) {
	l := &layout{columns: columns, renamed: map[string]string{}, fixed: map[string]string{}}
	for flag, pairs := range map[string][]string{"--map": renames, "--set": fixed} {
		into := l.renamed
		if flag == "--set" {
			into = l.fixed
		}
		for _, pair := range pairs {
			name, value, ok := strings.Cut(pair, "=")
			if !ok || name == "" {
				return nil, failure.Usagef("%s %s: it must be name=value", flag, pair)
			}
			if _, twice := into[name]; twice {
				return nil, failure.Usagef("%s %s: this column has a value already", flag, name)
			}
			if _, known := l.find(value); flag == "--map" && value != "" && !known {
				return nil, l.unknown("--map "+pair+": ", value)
			}
			if flag == "--set" {
				if err := l.checkFixed(name, value); err != nil {
					return nil, err
				}
			}
			into[name] = value
		}
	}
	return l, nil
}

func (l *layout) checkFixed(name, value string) error {
	t, known := l.find(name)
	if !known || t.ignore {
		return l.unknown("--set: ", name)
	}
	if _, fault := t.column.parse(value, len(t.path) > 0); fault != "" {
		return failure.Usagef("--set %s: %s", name, fault)
	}
	return nil
}

// find finds the target of a member's name.
func (l *layout) find(name string) (target, bool) {
	if name == reasonColumn {
		return target{ignore: true}, true
	}
	outer, inner, nested := strings.Cut(name, ".")
	for _, c := range l.columns {
		switch {
		case c.name == name:
			return target{column: c, ignore: c.readOnly}, true
		case nested && c.form == extra && c.name == outer && inner != "":
			return target{column: c, path: strings.Split(inner, ".")}, true
		}
	}
	return target{}, false
}

// of finds the target of a column of the file.
func (l *layout) of(name string) (target, bool) {
	if renamed, ok := l.renamed[name]; ok {
		if renamed == "" {
			return target{ignore: true}, true
		}
		name = renamed
	}
	return l.find(name)
}

// header finds the targets of a table's columns. All faults come at once.
func (l *layout) header(names []string) ([]target, error) {
	targets := make([]target, len(names))
	var faults []string
	first := map[string]int{}
	used := map[string]string{}
	for i, name := range names {
		if at, twice := first[name]; twice {
			faults = append(faults, failure.Usagef(
				"the column %q is there twice, as columns %d and %d", output.Printable(name), at+1, i+1).Error())
			continue
		}
		first[name] = i
		t, known := l.of(name)
		if !known {
			faults = append(faults, l.unknown("", name).Error())
			continue
		}
		if targets[i] = t; t.ignore {
			continue
		}
		for other, from := range used {
			if within(other, t.name()) || within(t.name(), other) {
				faults = append(faults, failure.Usagef("the columns %q and %q both give %s",
					output.Printable(from), output.Printable(name), t.name()).Error())
			}
		}
		used[t.name()] = name
	}
	for name := range l.fixed {
		if from, twice := used[name]; twice {
			faults = append(faults, failure.Usagef("--set %s: the column %q gives it", name,
				output.Printable(from)).Error())
		}
	}
	if len(faults) > 0 {
		return nil, failure.Usagef("%s", strings.Join(faults, "\n  "))
	}
	return targets, nil
}

func (t target) name() string { return strings.Join(append([]string{t.column.name}, t.path...), ".") }

// within reports whether two columns give the same place, or one a place within the other. A whole extra object and
// columns within it go together.
func within(outer, inner string) bool {
	return outer == inner || strings.HasPrefix(inner, outer+".") && strings.Contains(outer, ".")
}

const mostNear = 3 // names that an error suggests

// unknown is the error of a name that no column has, with those that look like it.
func (l *layout) unknown(flag, name string) error {
	plain := func(name string) string {
		return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "", ".", "").Replace(name))
	}
	type guess struct {
		name     string
		distance int
	}
	var guesses []guess
	for _, c := range l.columns {
		if c.readOnly {
			continue
		}
		a, b := plain(name), plain(c.name)
		distance := levenshtein.ComputeDistance(a, b)
		if len(a) > 2 && (strings.Contains(b, a) || strings.Contains(a, b)) {
			distance = 1
		}
		if distance <= 2 {
			guesses = append(guesses, guess{c.name, distance})
		}
	}
	slices.SortStableFunc(guesses, func(a, b guess) int { return cmp.Compare(a.distance, b.distance) })
	shown := output.Printable(name)
	if len(guesses) == 0 {
		var all []string
		for _, c := range l.columns {
			if !c.readOnly {
				all = append(all, c.name)
			}
		}
		return failure.Usagef("%sthere is no column %q: one of %s; --map '%s=' leaves it out", flag, shown,
			strings.Join(all, ", "), shown)
	}
	var near []string
	for _, g := range guesses[:min(mostNear, len(guesses))] {
		near = append(near, g.name)
	}
	return failure.Usagef("%sthere is no column %q; near it: %s (--map '%s=%s'; --map '%s=' leaves it out)", flag,
		shown, strings.Join(near, ", "), shown, near[0], shown)
}
