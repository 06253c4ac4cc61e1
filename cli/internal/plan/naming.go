package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// naming is how the files name records of the platform whose name there is another: what differs in case alone is the
// same name.
type naming struct {
	folded map[Ref]string // the files' key, by the key without case
	was    map[Ref]string // the files' key, by the former one
	unsure map[Ref]bool   // records that may have exchanged their names already
	state  *State
}

// foldedKinds are the kinds whose names the platform compares without case.
var foldedKinds = []string{application, user}

// fold is what equal names have in common: Unicode's compatibility caseless matching (D146), as on the platform.
func fold(name string) string {
	once := cases.Fold().String(norm.NFD.String(name))
	return norm.NFKC.String(cases.Fold().String(norm.NFKD.String(once)))
}

// caseless is a ref without case, if the platform compares such names without it.
func caseless(ref Ref) Ref {
	if slices.Contains(foldedKinds, ref.Kind) {
		ref.Key = fold(ref.Key)
	}
	return ref
}

// former is the ref that a desired record had before it was renamed.
func (w *Desired) former() (Ref, bool) {
	was, _ := w.Values["was"].(string)
	if was == "" {
		return Ref{}, false
	}
	if w.Kind == node {
		was = fmt.Sprintf("%s/%s", w.Values["tree"], was)
	}
	return caseless(Ref{w.Kind, was}), true
}

// formerFaults are the faults of former names: two documents have the same, or a document has one that keeps it. One
// that had another name itself leaves it to another.
func formerFaults(desired []*Desired) []string {
	names, former, faults := map[Ref]*Desired{}, map[Ref]*Desired{}, []string(nil)
	for _, w := range desired {
		names[caseless(w.Ref)] = w
	}
	for _, w := range desired {
		was, has := w.former()
		if !has {
			continue
		}
		stays := names[was]
		if stays != nil {
			if before, moved := stays.former(); moved && before != was {
				stays = nil
			}
		}
		for _, other := range []*Desired{stays, former[was]} {
			if other != nil && other != w {
				faults = append(faults, fmt.Sprintf("%s:%d: was names the same record as %s", w.File, w.line("was"),
					other.Place()))
			}
		}
		former[was] = w
	}
	return faults
}

// inOneCase gives references the names of their documents. Users, which have none, get the name that comes first.
func inOneCase(desired []*Desired) {
	names, renamed := namingOf(desired, nil), map[Ref]string{}
	note := func(ref Ref) {
		if !slices.Contains(foldedKinds, ref.Kind) {
			return
		}
		if key, has := names.folded[caseless(ref)]; has && key != ref.Key {
			renamed[ref] = key
		}
	}
	for _, w := range desired {
		for _, ref := range needs(w.Ref, w.Values) {
			note(ref)
		}
		if set, is := w.Values["set"].(string); is {
			note(Ref{application, setApplication(set)})
		}
		for _, name := range []string{"application", "resource_application"} {
			of, _ := w.Values[name].(string)
			note(Ref{application, of})
		}
	}
	if len(renamed) == 0 {
		return
	}
	for _, w := range desired {
		if w.Kind != application {
			w.Values = following(w.Kind, w.Values, renamed)
			w.Ref = followed(w.Ref, w.Values, renamed)
		}
	}
}

// settle removes the former names of records that are renamed already. ids has the id of each record of a kind, or of a
// tree, by its name on the platform.
func (n naming) settle(kind string, ids map[string]string) {
	there := map[Ref]string{}
	for key, id := range ids {
		there[caseless(Ref{kind, key})] = id
	}
	for was, key := range maps.Clone(n.was) { // of an apply that was stopped between two exchanged names
		between := caseless(Ref{kind, meanwhileKey(kind, key)})
		if _, has := there[between]; has && was.Kind == kind {
			delete(n.was, was)
			n.was[between] = key
		}
	}
	open := map[Ref]string{} // of those that are there
	for was, key := range n.was {
		if _, has := there[was]; has && was.Kind == kind {
			open[was] = key
		}
	}
	renames := map[Ref]bool{}
	for again := true; again; { // a name is free for another record once its own one gets another name
		again = false
		for was, key := range open {
			now := caseless(Ref{kind, key})
			_, taken := there[now]
			if !renames[was] && (!taken || now == was || renames[now]) {
				renames[was], again = true, true
			}
		}
	}
	for was := range open {
		if circle := circleOf(open, renames, was); len(circle) > 0 && n.exchanges(circle, there) {
			for _, ref := range circle {
				renames[ref] = true
			}
		}
	}
	for was := range open {
		if !renames[was] {
			delete(n.was, was)
		}
	}
}

// circleOf are the names that records exchange, from one on; nil if it is in no circle, or known to be renamed.
func circleOf(open map[Ref]string, renames map[Ref]bool, from Ref) []Ref {
	circle := []Ref{}
	for at := from; ; {
		key, has := open[at]
		if !has || renames[at] || slices.Contains(circle, at) {
			return nil
		}
		circle = append(circle, at)
		if at = caseless(Ref{at.Kind, key}); at == from {
			return circle
		}
	}
}

// exchanges reports whether records are still to exchange their names. All names are there before and after it, so only
// the state of a set can tell: it has the former names once the exchange has begun.
func (n naming) exchanges(circle []Ref, there map[Ref]string) bool {
	for _, was := range circle {
		key := n.was[was]
		a := n.state.caseless(Ref{was.Kind, key})
		if a == nil || a.ID == "" {
			n.unsure[Ref{was.Kind, key}] = true
			continue
		}
		former, _ := cmp.Or(a.Next["was"], a.Values["was"]).(string)
		if former != "" {
			return there[caseless(a.Ref)] != a.ID
		}
	}
	return true
}

// meanwhileKey is the key of a record whose own name is not free yet.
func meanwhileKey(kind, key string) string {
	name := temporary(Ref{kind, key})
	if of, _, inTree := strings.Cut(key, "/"); inTree && kind == node {
		return of + "/" + name
	}
	return name
}

// unsureFaults are the faults of documents that exchange names and may have done so already.
func (n naming) unsureFaults(desired []*Desired) []string {
	var faults []string
	for _, w := range desired {
		if n.unsure[w.Ref] {
			faults = append(faults, w.fault("was", "%s: names are exchanged, and only a set (--set) that has applied "+
				"these records before can tell whether it is done", w.Ref))
		}
	}
	return faults
}

func namingOf(desired []*Desired, state *State) naming {
	n := naming{folded: map[Ref]string{}, was: map[Ref]string{}, unsure: map[Ref]bool{}, state: state}
	note := func(ref Ref) {
		folded := Ref{ref.Kind, fold(ref.Key)}
		if _, has := n.folded[folded]; !has && slices.Contains(foldedKinds, ref.Kind) {
			n.folded[folded] = ref.Key
		}
	}
	for _, w := range desired { // the documents first: only they have the name that is wanted
		note(w.Ref)
		if former, has := w.former(); has {
			n.was[former] = w.Key
		}
	}
	for _, w := range desired {
		for _, ref := range needs(w.Ref, w.Values) {
			note(ref)
		}
	}
	if state != nil {
		for _, a := range state.Records {
			for _, ref := range append(needs(a.Ref, a.Values), a.Ref) {
				note(ref)
			}
		}
	}
	return n
}

// of is what the files call a record of the platform.
func (n naming) of(ref Ref) Ref {
	if key, has := n.was[caseless(ref)]; has {
		return Ref{ref.Kind, key}
	}
	if !slices.Contains(foldedKinds, ref.Kind) {
		return ref
	}
	if key, has := n.folded[Ref{ref.Kind, fold(ref.Key)}]; has {
		return Ref{ref.Kind, key}
	}
	return ref
}

// rename gives the records of a state the names that the files have for them now. Those with ids tell which they are;
// what refers to them follows.
func (s *State) rename(actual *Actual, desired map[Ref]*Desired) {
	if s == nil {
		return
	}
	renamed := map[Ref]string{}
	for _, a := range s.Records {
		key, there := actual.names[a.Kind][a.ID]
		if there && key != a.Key && (a.Kind == application || a.Kind == node) && desired[Ref{a.Kind, key}] != nil {
			renamed[a.Ref] = key
		}
		if kind, name, _ := identityOf(a.Values); kind == "user" {
			if now := actual.naming.of(Ref{user, name}); now.Key != name {
				renamed[Ref{user, name}] = now.Key
			}
		}
	}
	if len(renamed) == 0 {
		return
	}
	s.byRef = map[Ref]*Applied{}
	for _, a := range s.Records {
		a.Values, a.Next = following(a.Kind, a.Values, renamed), following(a.Kind, a.Next, renamed)
		a.Ref = followed(a.Ref, a.Values, renamed)
		s.byRef[a.Ref] = a
	}
}

// following are values that refer to renamed records by their new names.
func following(kind string, values map[string]any, renamed map[Ref]string) map[string]any {
	if values == nil {
		return nil
	}
	out := map[string]any{}
	for name, value := range values {
		text, _ := value.(string)
		switch name {
		case "application", "resource_application":
			out[name] = renamedKey(Ref{application, text}, renamed)
		case "pointer":
			out[name] = renamedKey(Ref{node, text}, renamed)
		case "parent":
			of, _ := values["tree"].(string)
			out[name] = strings.TrimPrefix(renamedKey(Ref{node, of + "/" + text}, renamed), of+"/")
		case "set":
			of := setApplication(text)
			out[name] = escaped(renamedKey(Ref{application, of}, renamed)) + strings.TrimPrefix(text, escaped(of))
		default:
			out[name] = value
		}
	}
	if identity, is := values["identity"].(map[string]any); is && kind == rule {
		of, name, _ := identityOf(values)
		if key := renamedKey(Ref{identityTypes[of], name}, renamed); key != name {
			out["identity"] = map[string]any{"type": identity["type"], "name": key}
		}
	}
	return out
}

// followed is the ref of a record with values that refer to renamed records. It keeps its number.
func followed(ref Ref, values map[string]any, renamed map[Ref]string) Ref {
	if key, has := renamed[ref]; has {
		return Ref{ref.Kind, key}
	}
	key, err := keyOf(ref.Kind, values)
	if err != nil || ref.Kind == application || ref.Kind == node || ref.Kind == connection {
		return ref
	}
	return Ref{ref.Kind, key + strings.TrimPrefix(ref.Key, plainKey(ref.Key))}
}

func renamedKey(ref Ref, renamed map[Ref]string) string {
	if key, has := renamed[ref]; has {
		return key
	}
	return ref.Key
}
