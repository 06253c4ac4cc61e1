package plan

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/cli/internal/output"
	idp "github.com/idplatform/idplatform/sdk/go"
)

// View says how a plan is shown to people.
type View struct {
	Width int // columns of a line; 0: 100
	Style output.Style
	All   bool // every step and every decision, however many are alike
}

const (
	usualWidth    = 100
	mostAlike     = 10 // steps of one action and kind that are shown unless all are asked for
	mostDecisions = 20
	mostNotTried  = 5
)

var signs = map[string]string{Create: "+", Update: "~", Delete: "-"}

// page is a plan as it is written.
type page struct {
	View
	w io.Writer
}

// Print writes the plan for people.
func (p *Plan) Print(w io.Writer, v View) {
	v.Width = cmp.Or(v.Width, usualWidth)
	out := &page{View: v, w: w}
	seen, over := map[group]int{}, []group{}
	for _, s := range p.Steps {
		if of := (group{s.Action, s.Kind}); s.plain() && !v.All {
			if seen[of]++; seen[of] > mostAlike {
				if seen[of] == mostAlike+1 {
					over = append(over, of)
				}
				continue
			}
		}
		out.step(s)
	}
	for _, of := range over {
		more := output.Counted(seen[of]-mostAlike, "more "+of.kind, "more "+of.kind+"s")
		fmt.Fprintln(w, paint(v.Style, of.action, signs[of.action]+" "+more)+"; --all shows every step")
	}
	out.unmanaged(p.Unmanaged)
	if p.Impact != nil {
		out.impact(p.Impact, p.actual)
	}
	summary := v.Style.Bold(p.Summary())
	if p.Refused() != nil {
		summary = v.Style.BoldRed(p.Summary())
	}
	fmt.Fprintln(w, summary)
}

// group is what makes steps alike.
type group struct{ action, kind string }

// plain reports whether nothing has to be said of a step but what it does.
func (s *Step) plain() bool { return s.Problem == nil && len(s.Drift) == 0 }

func paint(style output.Style, action, text string) string {
	switch action {
	case Create:
		return style.Green(text)
	case Delete:
		return style.Red(text)
	}
	return style.Yellow(text)
}

func (o *page) step(s *Step) {
	head, changes := signs[s.Action]+" "+output.Printable(s.Ref.String()), s.Changes
	if s.Kind == rule && s.Action == Create && len(changes) == 1 && changes[0].Member == "actions" {
		head, changes = output.Cut(head+" "+text(changes[0].After), o.Width), nil // most rules are no more than that
	}
	fmt.Fprint(o.w, paint(o.Style, s.Action, head))
	if place := output.Printable(s.Place); place != "" {
		separator := "  "
		if output.Columns(head)+len(separator)+output.Columns(place) > o.Width {
			separator = "\n    " // a place is whole, so that it can be opened
		}
		fmt.Fprint(o.w, separator+place)
	}
	fmt.Fprintln(o.w)
	for _, c := range changes {
		if !s.names(c) {
			o.change(s.Action, c)
		}
	}
	for _, line := range s.Drift {
		fmt.Fprintln(o.w, o.Style.Yellow("    drift: "+line+" when the set was applied"))
	}
	if s.With != nil {
		fmt.Fprintf(o.w, "    goes with %s%s\n", output.Printable(s.With.String()),
			map[bool]string{true: ", and is not of the set"}[s.Foreign])
	}
	if s.Interim {
		fmt.Fprintln(o.w, "    for a while: a later step makes it as the files say")
	}
	switch {
	case s.Scope != "":
		fmt.Fprintf(o.w, "    not tried: it needs the scope %s\n", s.Scope)
	case s.DependsOn != nil:
		fmt.Fprintf(o.w, "    not tried: %s\n", output.Printable(s.waiting()))
	case s.Problem != nil:
		for _, line := range s.faults() {
			fmt.Fprintln(o.w, o.Style.BoldRed("    ! "+output.Printable(line)))
		}
	}
}

// names reports whether the name of a new record says a member already.
func (s *Step) names(c Change) bool {
	value, is := c.After.(string)
	return s.Action == Create && is && slices.Contains([]string{"name", "code", "type"}, c.Member) &&
		strings.Contains(s.Key, value)
}

// change writes what becomes of a member, on one line if there is room, else each value on its own.
func (o *page) change(action string, c Change) {
	const indent = "    "
	if action == Create {
		fmt.Fprintln(o.w, output.Cut(fmt.Sprintf("%s%s: %s", indent, c.Member, text(c.After)), o.Width))
		return
	}
	before, after := text(c.Before), text(c.After)
	line := fmt.Sprintf("%s%s: %s → %s", indent, c.Member, before, after)
	if output.Columns(line) <= o.Width {
		fmt.Fprintln(o.w, line)
		return
	}
	before, after = differing(before, after)
	fmt.Fprintf(o.w, "%s%s:\n", indent, c.Member)
	fmt.Fprintln(o.w, o.Style.Red(output.Cut(indent+"  - "+before, o.Width)))
	fmt.Fprintln(o.w, o.Style.Green(output.Cut(indent+"  + "+after, o.Width)))
}

// differing leaves out most of what two long texts begin with alike, so that their difference is not cut away.
func differing(a, b string) (string, string) {
	const kept = 20 // characters before the difference
	x, y := []rune(a), []rune(b)
	same := 0
	for same < len(x) && same < len(y) && x[same] == y[same] {
		same++
	}
	if same <= kept {
		return a, b
	}
	return "…" + string(x[same-kept:]), "…" + string(y[same-kept:])
}

// Summary counts the steps.
func (p *Plan) Summary() string {
	counts, refused, waiting := map[string]int{}, 0, 0
	for _, s := range p.Steps {
		counts[s.Action]++
		if s.Problem != nil {
			refused++
		}
		if s.DependsOn != nil || s.Scope != "" {
			waiting++
		}
	}
	if len(p.Steps) == 0 && p.Orphaned == 0 && len(p.Unmanaged) == 0 {
		return "no difference: " + output.Counted(p.Unchanged, "record is", "records are") + " as the files say"
	}
	parts := []string{fmt.Sprintf("%d to create, %d to change, %d to delete; %s as the files say",
		counts[Create], counts[Update], counts[Delete], output.Counted(p.Unchanged, "is", "are"))}
	if waiting > 0 {
		parts = append(parts, fmt.Sprintf("%d not tried", waiting))
	}
	if refused > 0 {
		parts = append(parts, fmt.Sprintf("%d REFUSED", refused))
	}
	if p.Orphaned > 0 {
		parts = append(parts, output.Counted(p.Orphaned, "that the set made is", "that the set made are")+
			" not in the files: --prune deletes what the set made")
	}
	if len(p.Unmanaged) > 0 {
		parts = append(parts, output.Counted(len(p.Unmanaged), "rule was", "rules were")+" made by hand")
	}
	return strings.Join(parts, "; ")
}

// text shows a value on one line.
func text(value any) string {
	switch v := value.(type) {
	case nil:
		return "(none)"
	case Secret:
		return "(secret from " + string(v) + ")"
	case string:
		if v == "" {
			return `""`
		}
		if v == masked {
			return "(secret)"
		}
		return output.Printable(v)
	case []any:
		var parts []string
		for _, item := range v {
			parts = append(parts, text(item))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case map[string]any:
		others := maps.Clone(v)
		delete(others, "code")
		if code, is := v["code"].(string); is && sameMembers(others, nil) { // an action without a description
			return output.Printable(code)
		}
	}
	encoded, _ := json.Marshal(value)
	return output.Printable(string(encoded))
}

// faults are what the platform says against a step, by the lines of the files.
func (s *Step) faults() []string {
	problem, ok := errors.AsType[*idp.Problem](s.Problem)
	if !ok || len(problem.Errors) == 0 {
		if ok {
			return []string{fmt.Sprintf("%s (%d %s)", problem.Detail, problem.Status, problem.Code)}
		}
		return []string{s.Problem.Error()}
	}
	var out []string
	for _, fault := range problem.Errors {
		member, _ := memberOf(fault.Location)
		place := ""
		if s.want != nil {
			place = fmt.Sprintf("%s:%d: ", s.want.File, s.want.line(member))
		}
		out = append(out, fmt.Sprintf("%s%s: %s", place, member, fault.Message))
	}
	return out
}

// MarshalJSON writes the plan for programs.
func (p *Plan) MarshalJSON() ([]byte, error) {
	type step struct {
		*Step
		Problems []string `json:"problems,omitempty"`
	}
	steps := []step{}
	for _, s := range p.Steps {
		one := step{Step: s}
		if s.Problem != nil {
			one.Problems = s.faults()
		}
		steps = append(steps, one)
	}
	out := map[string]any{"steps": steps, "unchanged": p.Unchanged, "left": p.Orphaned}
	if p.Impact != nil {
		out["impact"] = p.Impact
	}
	if p.Unmanaged != nil {
		out["unmanaged"] = p.Unmanaged
	}
	return json.Marshal(out)
}
