package plan

import (
	"fmt"

	"github.com/idplatform/idplatform/cli/internal/output"
)

// findUnmanaged finds the rules of the files' applications that neither the files nor the set has: somebody has made
// them by hand.
func (p *Plan) findUnmanaged(pairs map[*Desired]*Record) {
	managed := map[*Record]bool{}
	for _, r := range pairs {
		managed[r] = true
	}
	for _, s := range p.Steps {
		managed[s.record] = true
	}
	p.Unmanaged = []*Unmanaged{}
	for _, r := range p.actual.sorted(rule) {
		if !managed[r] && p.options.State.of(r.Ref) == nil {
			p.Unmanaged = append(p.Unmanaged, &Unmanaged{Ref: r.Ref, ID: r.ID, Actions: r.Values["actions"]})
		}
	}
}

// Unmanaged is a rule that is neither in the files nor of the set.
type Unmanaged struct {
	Ref
	ID      string `json:"id"`
	Actions any    `json:"actions"`
}

// unmanaged lists the rules that somebody has made by hand.
func (o *page) unmanaged(list []*Unmanaged) {
	for n, u := range list {
		if n == mostAlike && !o.All {
			fmt.Fprintf(o.w, "? %s; --all shows every one\n", output.Counted(len(list)-n, "more Rule", "more Rules"))
			return
		}
		line := fmt.Sprintf("? %s %s", output.Printable(u.Ref.String()), text(u.Actions))
		fmt.Fprintln(o.w, output.Cut(line, o.Width))
		fmt.Fprintf(o.w, "    made by hand: idp grants revoke %s takes it away\n", u.ID)
	}
}
