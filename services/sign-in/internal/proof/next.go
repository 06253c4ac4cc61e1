package proof

import (
	"slices"

	"github.com/idplatform/idplatform/pkg/clock"
)

// Demand is what a sign-in has to reach.
type Demand struct {
	Steps []Step
	// Class is the least class; empty: any.
	Class string
	// Factors are the methods that count for Class beside a password; empty: all.
	Factors []string
	// NoSetUp keeps people from setting up a factor for Class on the way.
	NoSetUp bool
	// Prefers is a class that is reached if the person can reach it.
	Prefers string
	// Wishes are classes of which the first one is reached that the person can reach.
	Wishes []string
}

// Person is what is known of who signs in.
type Person struct {
	Known   bool
	Methods []string // that the person can show: Password, and the methods of the factors
	// Factors are the methods of all that the person has set up, also what cannot be shown here, such as a passkey of
	// another site: recovery codes take the place of these.
	Factors []string
	// Elsewhere are the channels of connections through which the person can perhaps sign in: it is not known whether
	// they are linked. They are asked for where a step demands them and nothing else will do.
	Elsewhere []string
}

// Lost reports whether the person has factors and can show none of them.
func (p Person) Lost() bool {
	return len(p.Factors) > 0 && !slices.ContainsFunc(p.Methods, IsFactor)
}

// Next is what is due. It is empty if nothing is.
type Next struct {
	Show  []string // methods of which one is to be shown
	SetUp []string // methods of which the person has to set one up
	Offer []string // methods of which the person can set one up, or go on without
	// OfferOf is the index of the step that Offer is for.
	OfferOf int
	// Missing are the methods that are demanded and that the person can neither show nor set up; "none" stands for a
	// step without methods, and "mfa" for a second factor.
	Missing []string
}

// What Missing has beside types of methods.
const (
	NoMethod   = "none"
	AnyFactors = "mfa"
	// LostFactor stands for the factors of a person who can show none of them here, such as passkeys of another site,
	// and who therefore cannot set up another one.
	LostFactor = "lost"
)

// Done reports whether nothing is due.
func (n Next) Done() bool {
	return len(n.Show) == 0 && len(n.SetUp) == 0 && len(n.Missing) == 0 && len(n.Offer) == 0
}

// begins reports whether a method says who the person is.
func begins(method string) bool { return method == Password || method == Passkey || isUpstream(method) }

// Next returns what is due after some proofs. setUp are the methods that can be set up. Required steps come in their
// order, then the class, then the steps that are not required of those who can complete them, and what is offered comes
// last. Nothing goes without a method that says who the person is. Whoever has a factor shows one before setting up
// another that is demanded.
func (d Demand) Next(proofs []Proof, p Person, setUp []string) Next {
	d = d.of(p)
	begun := slices.ContainsFunc(proofs, func(p Proof) bool {
		return begins(p.by()) && !d.isSecond(p.by())
	})
	if !p.Known || !begun || len(d.Steps) == 0 {
		return d.first()
	}
	next := d.next(proofs, p, setUp)
	if p.Lost() {
		next.Offer = nil
		if len(next.SetUp) > 0 {
			next = Next{Missing: []string{LostFactor}}
		}
	}
	if len(next.SetUp) == 0 || slices.ContainsFunc(proofs, func(p Proof) bool { return IsFactor(p.Method) }) {
		return next
	}
	if has := only(p.Methods, IsFactor); len(has) > 0 {
		return Next{Show: has}
	}
	return next
}

// of is the demand on a person: recovery codes count only where they take the place of a factor that the person has.
func (d Demand) of(p Person) Demand {
	place := func(methods []string) []string {
		factors := only(methods, func(m string) bool { return m != RecoveryCode })
		if len(both(factors, p.Factors)) > 0 {
			return methods
		}
		return factors
	}
	steps := slices.Clone(d.Steps)
	for i := range steps {
		steps[i].Methods = place(steps[i].Methods)
	}
	d.Steps = steps
	if len(d.Factors) > 0 {
		d.Factors = place(d.Factors)
	}
	return d
}

// Lacking are the indexes of the steps that a person could not complete by showing all that they have, once each.
// Recovery codes do not count: they take the place of a factor.
func (d Demand) Lacking(p Person) []int {
	return Left(d.Steps, d.with(nil, only(p.Methods, func(m string) bool { return m != RecoveryCode })...))
}

// first is how a sign-in begins: by a method that says who the person is, of the steps up to the first required one
// that has any.
func (d Demand) first() Next {
	var show []string
	for _, step := range d.Steps {
		can := only(step.Methods, func(m string) bool { return begins(m) && !slices.Contains(step.Second, m) })
		show = append(show, only(can, func(m string) bool { return !slices.Contains(show, m) })...)
		if step.Required && len(can) > 0 {
			break
		}
	}
	if len(show) == 0 {
		return Next{Missing: []string{Password}}
	}
	return Next{Show: show}
}

// isSecond reports whether a method is in the steps, and begins no sign-in.
func (d Demand) isSecond(method string) bool {
	second := false
	for _, step := range d.Steps {
		if slices.Contains(step.Methods, method) {
			if second = slices.Contains(step.Second, method); !second {
				return false
			}
		}
	}
	return second
}

// Begins reports whether a sign-in can begin with a method.
func (d Demand) Begins(method string) bool { return slices.Contains(d.first().Show, method) }

func (d Demand) next(proofs []Proof, p Person, setUp []string) Next {
	unused := func(methods []string) []string {
		return only(methods, func(m string) bool {
			return !slices.ContainsFunc(proofs, func(p Proof) bool {
				return p.by() == m && !(d.verifies() && p.unverified())
			})
		})
	}
	left := Left(d.Steps, proofs)
	// A method can complete a step that another one has completed, so that the other one completes a further step.
	completing := func(i int, m string) bool {
		return slices.Contains(d.Steps[i].Methods, m) || len(Left(d.Steps, d.with(proofs, m))) < len(left)
	}
	// stands reports whether a recovery code takes the place of a factor that was not shown.
	stands := func(i int) bool {
		return slices.ContainsFunc(both(p.Factors, d.Steps[i].Methods), func(m string) bool {
			return m != RecoveryCode && !slices.ContainsFunc(proofs, func(p Proof) bool { return p.Method == m })
		})
	}
	completes := func(i int) []string {
		return unused(only(p.Methods, func(m string) bool {
			return completing(i, m) && (m != RecoveryCode || stands(i))
		}))
	}
	var optional []string
	var offer Next
	for _, i := range left {
		show := completes(i)
		switch {
		case !d.Steps[i].Required:
			can := unused(both(p.Methods, only(d.Steps[i].Methods, func(m string) bool {
				return m != RecoveryCode || stands(i)
			})))
			if len(optional) == 0 {
				optional = can
			}
			add := unused(only(setUp, func(m string) bool {
				return slices.Contains(d.Steps[i].Methods, m) && !slices.Contains(p.Methods, m)
			}))
			if d.Steps[i].Offer && len(offer.Offer) == 0 && len(can) == 0 && len(add) > 0 {
				offer = Next{Offer: add, OfferOf: i}
			}
		case len(show) > 0:
			return Next{Show: show}
		default:
			var add []string
			if !d.Steps[i].NoSetUp {
				add = unused(only(setUp, func(m string) bool { return completing(i, m) }))
			}
			has := unused(p.Methods)
			if step := d.never(left, slices.Concat(p.Methods, p.Elsewhere, setUp)); len(add) > 0 && step >= 0 {
				return orMissing(nil, d.Steps[step].Methods)
			}
			reaches := only(add, func(m string) bool { return d.reached(d.with(d.with(proofs, has...), m)) })
			if d.NoSetUp && len(reaches) > 0 { // another one could not be set up for the class
				add = reaches
			}
			if code := unused(both(p.Methods, []string{RecoveryCode})); len(add) == 0 && len(code) > 0 &&
				completing(i, RecoveryCode) {
				return Next{Show: code}
			}
			elsewhere := unused(only(p.Elsewhere, func(m string) bool { return completing(i, m) }))
			if len(add) == 0 && len(elsewhere) > 0 {
				return Next{Show: elsewhere}
			}
			return orMissing(add, d.Steps[i].Methods)
		}
	}
	if !d.reached(proofs) {
		if d.NoSetUp {
			setUp = nil
		}
		return d.forClass(proofs, unused(p.Methods), unused(setUp))
	}
	if len(optional) > 0 {
		return Next{Show: optional}
	}
	reaching := func(class string) []string {
		return only(unused(p.Methods), func(m string) bool { return Meets(Class(d.with(proofs, m)), class) })
	}
	if show := reaching(d.Prefers); len(show) > 0 && !Meets(Class(proofs), d.Prefers) {
		return Next{Show: show}
	}
	for _, class := range d.Wishes {
		if Meets(Class(proofs), class) {
			break
		}
		if show := reaching(class); len(show) > 0 {
			return Next{Show: show}
		}
	}
	return offer
}

// never returns the index of a required step that is left and has none of the methods that a person has or can set up;
// -1: there is none.
func (d Demand) never(left []int, methods []string) int {
	for _, i := range left {
		if d.Steps[i].Required && len(both(d.Steps[i].Methods, methods)) == 0 {
			return i
		}
	}
	return -1
}

// forClass is what is due where only the class is not reached: a method by which it is, or the first of several.
func (d Demand) forClass(proofs []Proof, has, setUp []string) Next {
	reaches := func(methods ...string) bool { return d.reached(d.with(proofs, methods...)) }
	one := func(m string) bool { return reaches(m) }
	several := func(methods []string) []string {
		if slices.Contains(methods, Password) {
			return []string{Password}
		}
		return only(methods, d.counts)
	}
	switch show := only(has, one); {
	case len(show) > 0:
		return Next{Show: show}
	case reaches(has...):
		return Next{Show: several(has)}
	}
	switch add := only(setUp, one); {
	case len(add) > 0:
		return Next{SetUp: add}
	case !reaches(slices.Concat(has, setUp)...):
		return orMissing(nil, []string{AnyFactors})
	case slices.Contains(has, Password):
		return Next{Show: []string{Password}}
	}
	return Next{SetUp: only(setUp, d.counts)}
}

// verifies reports whether a step demands that passkeys verify their user: then the pages ask for it.
func (d Demand) verifies() bool {
	return slices.ContainsFunc(d.Steps, func(s Step) bool { return s.Verified })
}

// with are proofs and one more by each of some methods, as far as anybody can have one.
func (d Demand) with(proofs []Proof, methods ...string) []Proof {
	proofs = slices.Clone(proofs)
	for _, m := range methods {
		one, ok := Example(m)
		if m == Passkey && d.verifies() {
			one = ByPasskey(clock.Time{}, "", clock.Time{}, true, false)
		}
		if ok {
			proofs = append(proofs, one)
		}
	}
	return proofs
}

// counts reports whether a method counts for Class.
func (d Demand) counts(method string) bool {
	return !IsFactor(method) || len(d.Factors) == 0 || slices.Contains(d.Factors, method)
}

// reached reports whether proofs reach Class by the methods that count. Where only some factors do, another provider's
// sign-in is one factor, whatever it claims.
func (d Demand) reached(proofs []Proof) bool {
	if d.Class == "" {
		return true
	}
	var counting []Proof
	for _, p := range proofs {
		if !d.counts(p.Method) {
			continue
		}
		if isUpstream(p.Channel) && len(d.Factors) > 0 {
			p.Kinds = []Kind{Knows}
		}
		counting = append(counting, p)
	}
	return Meets(Class(counting), d.Class)
}

// Impossible returns the methods that are demanded and that nobody can show who can show all of some methods.
func (d Demand) Impossible(methods []string) []string {
	proofs := d.with(nil, methods...)
	var missing []string
	for _, i := range Left(d.Steps, proofs) {
		if d.Steps[i].Required {
			missing = append(missing, orMissing(nil, d.Steps[i].Methods).Missing...)
		}
	}
	if len(missing) == 0 {
		missing = d.first().Missing
	}
	if len(missing) == 0 && !d.reached(proofs) {
		missing = only(d.Factors, func(m string) bool { return !slices.Contains(methods, m) })
		if len(missing) == 0 {
			missing = []string{AnyFactors}
		}
	}
	slices.Sort(missing)
	return slices.Compact(missing)
}

func orMissing(setUp, demanded []string) Next {
	if len(setUp) > 0 {
		return Next{SetUp: setUp}
	}
	missing := only(demanded, func(m string) bool { return m != RecoveryCode })
	if len(missing) == 0 {
		missing = []string{NoMethod}
	}
	return Next{Missing: missing}
}

// only returns the strings of which something is true.
func only(all []string, is func(string) bool) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return !is(s) })
}

// both returns what is in both lists, in the order of the first.
func both(a, b []string) []string {
	return only(a, func(s string) bool { return slices.Contains(b, s) })
}
