package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/idplatform/idplatform/cli/internal/output"
	idp "github.com/idplatform/idplatform/sdk/go"
)

// Impact is who would gain and who would lose access by a plan.
type Impact struct {
	*idp.AccessImpact          // nil: there is nothing to ask, or no answer
	NotTried          []string `json:"not_tried,omitempty"` // steps that are left out, and why
	Unknown           string   `json:"unknown,omitempty"`   // why there is no answer
}

// accessChanges is the question of POST /v1/auth-impact. Rules are sent as the operations that write them take them.
type accessChanges struct {
	IdentityTypes []string             `json:"identity_types"`
	Grant         []proposedRule       `json:"grant"`
	Revoke        []string             `json:"revoke"`
	Moves         []idp.ProposedMove   `json:"moves"`
	Statuses      []idp.ProposedStatus `json:"statuses,omitempty"` // older platforms do not know it
}

type proposedRule struct {
	Identity any `json:"identity"`
	Rule     any `json:"rule"`
}

// AssessImpact asks the platform who gains and who loses access. An unknown answer is not an error.
func (p *Plan) AssessImpact(ctx context.Context) error {
	changes, impact := accessChanges{IdentityTypes: []string{"user", "application"}}, &Impact{}
	for _, s := range p.Steps {
		why, err := p.addTo(ctx, &changes, s)
		if err != nil {
			return err
		}
		if why != "" {
			impact.NotTried = append(impact.NotTried, fmt.Sprintf("%s: %s", s.Ref, why))
		}
	}
	asks := len(changes.Grant)+len(changes.Revoke)+len(changes.Moves)+len(changes.Statuses) > 0
	if !asks && len(impact.NotTried) == 0 {
		return nil
	}
	p.Impact = impact
	if !asks {
		return nil
	}
	var answer idp.AccessImpact
	err := p.platform.Post(ctx, "/v1/auth-impact", changes, &answer)
	if problem, is := errors.AsType[*idp.Problem](err); is {
		impact.Unknown = whyUnknown(problem)
		return nil
	}
	if err != nil {
		return err
	}
	impact.AccessImpact = &answer
	return p.actual.nameApplications(ctx, answer.Items)
}

func whyUnknown(problem *idp.Problem) string {
	if problem.Code == idp.CodeForbidden {
		return "it needs the scope permissions:read"
	}
	text := problem.Detail
	for _, fault := range problem.Errors {
		text += fmt.Sprintf("; %s: %s", fault.Location, fault.Message)
	}
	return fmt.Sprintf("%s (%d %s)", text, problem.Status, problem.Code)
}

// addTo adds what a step changes of access. It returns why it leaves a step out that may change some.
func (p *Plan) addTo(ctx context.Context, changes *accessChanges, s *Step) (why string, err error) {
	moves, switches := s.moves(), s.altersNode("status")
	switch {
	case s.Interim:
		return "", nil // the end is compared
	case s.changesOtherwise():
		return "only rules, moves and statuses of nodes are compared", nil
	case s.Kind != rule && !moves && !switches:
		return "", nil
	case s.Problem != nil:
		return "the platform refuses it", nil
	case s.DependsOn != nil && s.Action != Delete:
		return s.waiting(), nil
	}
	if s.Kind == rule && s.Action != Create {
		changes.Revoke = append(changes.Revoke, s.record.ID)
	}
	if s.Action == Delete {
		return "", nil
	}
	writes, err := p.writes(ctx, s)
	if err != nil {
		return "", err
	}
	if switches {
		status, _ := s.want.Values["status"].(string)
		changes.Statuses = append(changes.Statuses, idp.ProposedStatus{NodeID: s.record.ID, Status: status})
	}
	if moves {
		body := writes[0].Body.(map[string]any)
		parent, _ := body["parent_id"].(string)
		of, _ := s.want.Values["tree"].(string)
		root, _ := p.actual.records[Ref{tree, of}].raw["root_node_id"].(string)
		changes.Moves = append(changes.Moves, idp.ProposedMove{NodeID: s.record.ID, ParentID: cmp.Or(parent, root)})
	}
	if s.Kind == node {
		return "", nil
	}
	proposed := proposedRule{Identity: p.identity(s.want.Values), Rule: writes[0].Body}
	if s.Action == Create { // the operation takes rules in a list
		proposed.Rule = writes[0].Body.(map[string]any)["rules"].([]any)[0]
	}
	changes.Grant = append(changes.Grant, proposed)
	return "", nil
}

// changes reports whether a step changes one of these members.
func (s *Step) changes(members ...string) bool {
	for _, c := range s.Changes {
		for _, member := range members {
			if c.Member == member {
				return true
			}
		}
	}
	return false
}

func (s *Step) moves() bool { return s.altersNode("parent") }

// altersNode reports whether a step changes a member of a node that is there.
func (s *Step) altersNode(member string) bool {
	return s.Kind == node && s.Action == Update && s.changes(member)
}

// changesOtherwise reports whether a step may change access in a way that the platform cannot be asked about.
func (s *Step) changesOtherwise() bool {
	switch s.Kind {
	case member, membership:
		return true
	case node:
		switch s.Action {
		case Create:
			return findsMembers(s.want.Values)
		case Delete:
			return findsMembers(s.record.Values)
		}
		return s.changes("condition", "is_dynamic", "is_pointer", "pointer")
	case application, resource, resourceSet, tree:
		return s.Action == Delete || s.Action == Update && s.changes("status", "code", "actions", "type")
	}
	return false
}

// findsMembers reports whether a node takes its members from another node or from a condition.
func findsMembers(node map[string]any) bool {
	return node["is_dynamic"] == "1" || node["is_pointer"] == "1"
}

// nameApplications finds the names of the applications in an answer, if nothing has read them.
func (l *Actual) nameApplications(ctx context.Context, items []idp.ChangedDecision) error {
	for _, item := range items {
		if _, known := l.names[application][item.ApplicationID]; known {
			continue
		}
		for raw, err := range l.platform.Each(ctx, "/v1/applications", nil) {
			if _, refused := errors.AsType[*idp.Problem](err); refused {
				return nil // applications are then shown by their ids
			}
			if err != nil {
				return err
			}
			l.called(Ref{application, raw["name"].(string)}, raw["id"].(string))
		}
		return nil
	}
	return nil
}

// impact writes who gains and who loses.
func (o *page) impact(i *Impact, actual *Actual) {
	fmt.Fprintln(o.w)
	defer fmt.Fprintln(o.w)
	switch {
	case i.Unknown != "":
		fmt.Fprintf(o.w, "access: not known: %s\n", output.Printable(i.Unknown))
	case i.AccessImpact == nil:
		fmt.Fprintln(o.w, "access: nothing can be compared yet")
	default:
		o.decisions(i, actual)
	}
	for n, line := range i.NotTried {
		if n == mostNotTried && !o.All {
			fmt.Fprintf(o.w, "    not compared: %d more\n", len(i.NotTried)-n)
			break
		}
		fmt.Fprintln(o.w, output.Cut("    not compared: "+output.Printable(line), o.Width))
	}
}

func (o *page) decisions(i *Impact, actual *Actual) {
	head := "access: "
	if len(i.NotTried) > 0 {
		head = "access (incomplete): "
	}
	fmt.Fprintln(o.w, o.Style.Bold(head+i.head()))
	var rows [][]string
	for n, item := range i.Items {
		if n == mostDecisions && !o.All {
			break
		}
		rows = append(rows, decision(item, actual))
	}
	for n, line := range output.Aligned("    ", rows) {
		if rows[n][0] == "gains" {
			line = o.Style.Green(line)
		} else {
			line = o.Style.Red(line)
		}
		fmt.Fprintln(o.w, line)
	}
	if more := i.Gained + i.Lost - int64(len(rows)); more > 0 {
		fmt.Fprintf(o.w, "    and %d more\n", more)
	}
	if i.Undecided > 0 {
		fmt.Fprintf(o.w, "    %s on the context of a check\n",
			output.Counted(int(i.Undecided), "further decision depends", "further decisions depend"))
	}
	if !i.Complete {
		fmt.Fprintln(o.w, "    not everything was compared: there is too much")
	}
}

// head counts people and applications: "2 people and 1 application gain, nobody loses".
func (i *Impact) head() string {
	people, applications := i.ByType["user"], i.ByType["application"]
	gain := who(people.Gaining, applications.Gaining, "gains", "gain")
	lose := who(people.Losing, applications.Losing, "loses", "lose")
	switch {
	case i.IdentitiesGaining+i.IdentitiesLosing == 0 && i.Complete:
		return "nobody gains or loses any"
	case !i.Complete:
		return "at least: " + gain + ", " + lose
	}
	return gain + ", " + lose
}

func who(people, applications int64, one, many string) string {
	var parts []string
	if people > 0 {
		parts = append(parts, output.Counted(int(people), "person", "people"))
	}
	if applications > 0 {
		parts = append(parts, output.Counted(int(applications), "application", "applications"))
	}
	switch people + applications {
	case 0:
		return "nobody " + one
	case 1:
		return parts[0] + " " + one
	}
	return strings.Join(parts, " and ") + " " + many
}

// decision is the row of a decision that changes.
func decision(item idp.ChangedDecision, actual *Actual) []string {
	object, verb := actual.keyOf(application, item.ApplicationID), "loses"
	if item.ObjectType != "app" {
		object += ":" + item.ObjectType + ":" + item.ObjectCode
	}
	if item.Change == "gained" {
		verb = "gains"
	}
	row := []string{verb, cmp.Or(item.IdentityName, item.IdentityID), object, cmp.Or(item.Action, "use")}
	if item.IdentityType == "application" {
		row[1] = "application " + cmp.Or(actual.names[application][item.IdentityID], row[1])
	}
	if item.Conditional {
		row = append(row, "by a condition")
	}
	return row
}
