package proof

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/idplatform/idplatform/pkg/clock"
)

var (
	ofApp   = mustExample(App)
	ofCodes = mustExample(RecoveryCode)
	ofKey   = mustExample(Passkey)

	ofVerifiedKey = ByPasskey(clock.Time{}, "", clock.Time{}, true, false)
)

// mustExample is an example that there is.
func mustExample(method string) Proof {
	p, ok := Example(method)
	if !ok {
		panic(method)
	}
	return p
}

func required(methods ...string) Step { return Step{Required: true, Methods: methods} }
func optional(methods ...string) Step { return Step{Methods: methods} }
func offered(methods ...string) Step  { return Step{Methods: methods, Offer: true} }
func verified(methods ...string) Step { return Step{Required: true, Methods: methods, Verified: true} }
func second(methods ...string) Step {
	return Step{Required: true, Methods: methods, Second: []string{Passkey}}
}
func closed(methods ...string) Step { return Step{Required: true, Methods: methods, NoSetUp: true} }

func TestNext(t *testing.T) {
	t.Parallel()
	var (
		onlyPassword = []string{Password}
		withApp      = []string{Password, App, RecoveryCode}
		steps        = []Step{required(Password), optional(App, Passkey, RecoveryCode)}
		known        = func(methods []string) Person {
			return Person{Known: true, Methods: methods, Factors: only(methods, IsFactor)}
		}
		nobody = Person{}
	)
	for name, c := range map[string]struct {
		demand Demand
		proofs []Proof
		person Person
		want   Next
	}{
		"nobody is known":        {Demand{Steps: steps}, nil, nobody, Next{Show: onlyPassword}},
		"no step says who it is": {Demand{Steps: []Step{required(App)}}, nil, nobody, Next{Missing: onlyPassword}},
		"the password was shown": {Demand{Steps: steps}, []Proof{password}, known(onlyPassword), Next{}},
		"whoever has an app uses it": {
			Demand{Steps: steps}, []Proof{password}, known(withApp), Next{Show: []string{App, RecoveryCode}},
		},
		"the app was shown":       {Demand{Steps: steps}, []Proof{password, ofApp}, known(withApp), Next{}},
		"a recovery code instead": {Demand{Steps: steps}, []Proof{password, ofCodes}, known(withApp), Next{}},
		"another step comes first": {
			Demand{Steps: []Step{required(App), required(Password)}}, nil, nobody, Next{Show: onlyPassword},
		},
		"a required app that is not there": {
			Demand{Steps: []Step{required(Password), required(App)}}, []Proof{password}, known(onlyPassword),
			Next{SetUp: []string{App}},
		},
		"a required passkey, and an app is there": {
			Demand{Steps: []Step{required(Password), required(Passkey)}}, []Proof{password}, known(withApp),
			Next{Missing: []string{Passkey}},
		},
		"two factors": {
			Demand{Steps: steps[:1], Class: TwoFactors}, []Proof{password}, known(withApp),
			Next{Show: []string{App, RecoveryCode}},
		},
		"two factors of who has none": {
			Demand{Steps: steps[:1], Class: TwoFactors}, []Proof{password}, known(onlyPassword),
			Next{SetUp: []string{App}},
		},
		"two factors of who must not set one up": {
			Demand{Steps: steps[:1], Class: TwoFactors, NoSetUp: true}, []Proof{password}, known(onlyPassword),
			Next{Missing: []string{AnyFactors}},
		},
		"the factor that counts is not the one shown": {
			Demand{Steps: steps[:1], Class: TwoFactors, Factors: []string{App}}, []Proof{password, ofCodes},
			known(withApp), Next{Show: []string{App}},
		},
		"phishing resistant": {
			Demand{Steps: steps[:1], Class: PhishingResistant}, []Proof{password}, known(withApp),
			Next{Missing: []string{AnyFactors}},
		},
		"a wish that can be met": {
			Demand{Steps: steps[:1], Wishes: []string{PhishingResistant, TwoFactors}}, []Proof{password},
			known(withApp), Next{Show: []string{App, RecoveryCode}},
		},
		"a recovery code of another factor": {
			Demand{Steps: []Step{required(Password), required(Passkey, RecoveryCode)}}, []Proof{password, ofCodes},
			known([]string{Password, App, RecoveryCode}), Next{Missing: []string{Passkey}},
		},
		"an optional factor that the person does not have": {
			Demand{Steps: []Step{required(Password), optional(Passkey, RecoveryCode)}}, []Proof{password},
			known(withApp), Next{},
		},
		"an app completes what the password has completed": {
			Demand{Steps: []Step{required(Password, App, RecoveryCode), required(Password)}}, []Proof{password},
			known(onlyPassword), Next{SetUp: []string{App}},
		},
		"an optional passkey comes before the password": {
			Demand{Steps: []Step{optional(Passkey), required(Password)}}, nil, nobody,
			Next{Show: []string{Passkey, Password}},
		},
		"an app is offered": {
			Demand{Steps: []Step{required(Password), offered(App, Passkey)}}, []Proof{password}, known(onlyPassword),
			Next{Offer: []string{App}, OfferOf: 1},
		},
		"who has the app that is offered uses it": {
			Demand{Steps: []Step{required(Password), offered(App, RecoveryCode)}}, []Proof{password}, known(withApp),
			Next{Show: []string{App, RecoveryCode}},
		},
		"an offer comes after the class": {
			Demand{Steps: []Step{required(Password), offered(Passkey)}, Class: TwoFactors}, []Proof{password},
			known(onlyPassword), Next{SetUp: []string{App}},
		},
		"nothing is offered that nobody can set up": {
			Demand{Steps: []Step{required(Password), offered(Passkey)}}, []Proof{password}, known(onlyPassword), Next{},
		},
		"a step for which nobody can set up a factor": {
			Demand{Steps: []Step{required(Password), closed(App)}}, []Proof{password}, known(onlyPassword),
			Next{Missing: []string{App}},
		},
		"such a step, and the app is there": {
			Demand{Steps: []Step{required(Password), closed(App, RecoveryCode)}}, []Proof{password}, known(withApp),
			Next{Show: []string{App, RecoveryCode}},
		},
		"a passkey that has not verified its user": {
			Demand{Steps: []Step{verified(Passkey)}}, []Proof{ofKey}, known([]string{Password, Passkey}),
			Next{Show: []string{Passkey}},
		},
		"a passkey that has verified its user": {
			Demand{Steps: []Step{verified(Passkey)}}, []Proof{ofVerifiedKey}, known([]string{Password, Passkey}),
			Next{},
		},
		"a passkey that is a second factor does not begin": {
			Demand{Steps: []Step{second(Password, Passkey)}}, nil, nobody, Next{Show: onlyPassword},
		},
		"nor is it enough": {
			Demand{Steps: []Step{second(Password, Passkey)}}, []Proof{ofKey}, known([]string{Password, Passkey}),
			Next{Show: onlyPassword},
		},
		"it begins in another step": {
			Demand{Steps: []Step{second(Password, Passkey), required(Passkey)}}, nil, nobody,
			Next{Show: onlyPassword},
		},
		"a recovery code takes the place of no factor that was shown": {
			Demand{Steps: []Step{
				required(Password), required(App, RecoveryCode), optional(App, Passkey, RecoveryCode),
			}},
			[]Proof{password, ofApp}, known(withApp), Next{},
		},
		"unless nothing else is left": {
			Demand{Steps: []Step{required(Password), required(App, RecoveryCode), closed(App, RecoveryCode)}},
			[]Proof{password, ofApp}, known(withApp), Next{Show: []string{RecoveryCode}},
		},
		"no steps": {Demand{}, []Proof{password}, known(withApp), Next{Missing: onlyPassword}},
		"a wish that cannot": {
			Demand{Steps: steps[:1], Wishes: []string{TwoFactors}}, []Proof{password}, known(onlyPassword), Next{},
		},
		"a wish that is met": {
			Demand{Steps: steps[:1], Wishes: []string{OneFactor, TwoFactors}}, []Proof{password}, known(withApp),
			Next{},
		},
		"a password twice": {
			Demand{Steps: []Step{required(Password), required(Password)}}, []Proof{password}, known(withApp),
			Next{Missing: onlyPassword},
		},
		"a step without methods": {
			Demand{Steps: []Step{required(Password), required()}}, []Proof{password}, known(withApp),
			Next{Missing: []string{NoMethod}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, orEmpty(c.demand.Next(c.proofs, c.person, []string{App})))
		})
	}
}

// What nobody can set up for the class is not set up for a step, where the step can do with what counts for both.
func TestNothingIsSetUpThatDoesNotCount(t *testing.T) {
	t.Parallel()
	d := Demand{
		Steps: []Step{required(Password), required(App, Passkey)}, Class: TwoFactors, Factors: []string{Passkey},
		NoSetUp: true,
	}
	p := Person{Known: true, Methods: []string{Password}}
	require.Equal(t, []string{Passkey}, d.Next([]Proof{password}, p, []string{App, Passkey}).SetUp)
	d.Factors = nil
	require.Equal(t, []string{App, Passkey}, d.Next([]Proof{password}, p, []string{App, Passkey}).SetUp)
}

// orEmpty makes lists without strings nil.
func orEmpty(n Next) Next {
	for _, list := range []*[]string{&n.Show, &n.SetUp, &n.Missing, &n.Offer} {
		if len(*list) == 0 {
			*list = nil
		}
	}
	return n
}

// Nobody goes on without a method that says who the person is, whatever else was shown.
func TestNothingGoesWithoutABeginning(t *testing.T) {
	t.Parallel()
	d := Demand{Steps: []Step{required(Password, App)}}
	p := Person{Known: true, Methods: []string{Password, App, RecoveryCode}, Factors: []string{App}}
	require.Equal(t, []string{Password}, d.Next([]Proof{ofApp}, p, nil).Show)
	require.True(t, d.Next([]Proof{password}, p, nil).Done())
}

// Whoever has a factor shows one before setting up another.
func TestAFactorComesBeforeAnotherIsSetUp(t *testing.T) {
	t.Parallel()
	d := Demand{Steps: []Step{required(Password), required(Passkey)}}
	p := Person{Known: true, Methods: []string{Password, App, RecoveryCode}, Factors: []string{App}}
	can := []string{App, Passkey}
	require.Equal(t, []string{App, RecoveryCode}, d.Next([]Proof{password}, p, can).Show)
	require.Equal(t, []string{Passkey}, d.Next([]Proof{password, ofApp}, p, can).SetUp)
	require.Equal(t, []string{Passkey}, d.Next([]Proof{password, ofCodes}, p, can).SetUp)
	p.Methods = p.Methods[:1]
	require.Equal(t, []string{LostFactor}, d.Next([]Proof{password}, p, can).Missing, "it cannot be shown")
	p.Factors = nil
	require.Equal(t, []string{Passkey}, d.Next([]Proof{password}, p, can).SetUp)
}

// Whatever is demanded and whoever signs in: doing what is due, one after the other, comes to an end, and what it comes
// to is what was demanded. If it says that something is missing, no way would have done: all are tried.
func TestNextFindsAWay(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d, has := drawDemand(t), drawMethods(t)
		setUp := [][]string{{App}, {Passkey, App}}[rapid.IntRange(0, 1).Draw(t, "can set up")]
		if slices.Contains(has, Passkey) && !slices.Contains(setUp, Passkey) {
			t.Skip("the site has no passkeys")
		}
		verifies := rapid.Bool().Draw(t, "verifies")
		for i := range d.Steps {
			d.Steps[i].Verified = verifies
		}
		had, way := slices.Clone(has), findWay(d, has, setUp)
		if d.NoSetUp || slices.ContainsFunc(d.Steps, func(s Step) bool { return s.NoSetUp }) {
			way = ""
		}
		key := mustExample(Passkey)
		if verifies || rapid.Bool().Draw(t, "verified") {
			key = ofVerifiedKey
		}
		show := func(m string) Proof {
			if m == Passkey {
				return key
			}
			return mustExample(m)
		}
		p, proofs := Person{}, []Proof(nil)
		for range 12 {
			switch next := d.Next(proofs, p, setUp); {
			case next.Done():
				check(t, d.of(p), proofs, has, setUp)
				return
			case len(next.Missing) > 0:
				if way != "" {
					t.Fatalf("%v is missing after %v, and this would do: %s", next.Missing, proofs, way)
				}
				return
			case len(next.SetUp) > 0:
				m := rapid.SampledFrom(next.SetUp).Draw(t, "sets up")
				if slices.Contains(has, m) || !p.Known {
					t.Fatalf("%s is to be set up again, or by nobody", m)
				}
				shown := slices.ContainsFunc(proofs, func(p Proof) bool { return IsFactor(p.Method) })
				if slices.ContainsFunc(had, IsFactor) && !shown {
					t.Fatal("a factor is set up before one that is there was shown")
				}
				if has = append(slices.Clone(has), m); !slices.Contains(has, RecoveryCode) {
					has = append(has, RecoveryCode)
				}
				proofs = Add(proofs, show(m))
			case len(next.Offer) > 0:
				if m := rapid.SampledFrom(append(next.Offer, "")).Draw(t, "accepts"); m != "" {
					if slices.Contains(has, m) || !p.Known {
						t.Fatalf("%s is offered again, or to nobody", m)
					}
					has = append(slices.Clone(has), m)
					proofs = Add(proofs, show(m))
					break
				}
				for i := range d.Steps {
					d.Steps[i].Offer = false
				}
			case !p.Known:
				begins := both(next.Show, has)
				if len(begins) == 0 { // the person cannot begin
					return
				}
				proofs = Add(proofs, show(rapid.SampledFrom(begins).Draw(t, "begins")))
			case len(both(next.Show, has)) == 0 && slices.Contains(next.Show, elsewhere):
				if way != "" { // the person is not linked
					t.Fatalf("only another provider is asked for after %v, and this would do: %s", proofs, way)
				}
				return
			default:
				m := rapid.SampledFrom(only(next.Show, func(m string) bool {
					return m != elsewhere || slices.Contains(has, elsewhere)
				})).Draw(t, "shows")
				if !slices.Contains(has, m) || wasShown(proofs, m) {
					t.Fatalf("%s is asked for, of a person who has %v, after %v", m, has, proofs)
				}
				proofs = Add(proofs, show(m))
			}
			p = Person{
				Known: true, Methods: only(has, func(m string) bool { return m != elsewhere }),
				Factors: only(has, IsFactor), Elsewhere: []string{elsewhere},
			}
		}
		t.Fatalf("something is always due: %v", proofs)
	})
}

func drawDemand(t *rapid.T) Demand {
	same := func(m string) string { return m }
	factors := []string{App, Passkey}
	d := Demand{
		Steps: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Step {
			types := rapid.SampledFrom([]string{Password, App, Passkey, elsewhere})
			methods := rapid.SliceOfNDistinct(types, 1, 3, same).Draw(t, "methods")
			if slices.ContainsFunc(methods, IsFactor) {
				methods = append(methods, RecoveryCode)
			}
			step := Step{Required: rapid.Bool().Draw(t, "required"), Methods: methods}
			if rapid.Bool().Draw(t, "special") {
				step.NoSetUp, step.Offer = step.Required, !step.Required
			}
			return step
		}), 1, 3).Draw(t, "steps"),
		Class:   rapid.SampledFrom([]string{"", "", OneFactor, TwoFactors, PhishingResistant}).Draw(t, "class"),
		NoSetUp: rapid.Bool().Draw(t, "no set-up"),
		Wishes:  rapid.SliceOfN(rapid.SampledFrom(classes), 0, 2).Draw(t, "wishes"),
		Prefers: rapid.SampledFrom([]string{"", TwoFactors}).Draw(t, "prefers"),
	}
	if count := rapid.SliceOfNDistinct(rapid.SampledFrom(factors), 0, 1, same).Draw(t, "factors"); len(count) > 0 {
		d.Factors = append(count, RecoveryCode)
	}
	return d
}

// drawMethods are a person's. With a factor come recovery codes.
func drawMethods(t *rapid.T) []string {
	has := []string{Password}
	for _, m := range []string{App, Passkey} {
		if rapid.Bool().Draw(t, m) {
			has = append(has, m)
		}
	}
	if len(has) > 1 {
		has = append(has, RecoveryCode)
	}
	if rapid.Bool().Draw(t, elsewhere) { // linked
		has = append(has, elsewhere)
	}
	return has
}

// findWay tries all that a person could set up and show, and returns what does; empty if nothing does.
func findWay(d Demand, has, setUp []string) string {
	for _, add := range subsets(only(setUp, func(m string) bool { return !slices.Contains(has, m) })) {
		all := append(slices.Clone(has), add...)
		of := d.of(Person{Factors: only(all, IsFactor)})
		for _, shown := range subsets(all) {
			proofs := d.with(nil, shown...)
			begins := len(both(d.first().Show, both(shown, has))) > 0
			left := slices.ContainsFunc(Left(of.Steps, proofs), func(i int) bool { return of.Steps[i].Required })
			if begins && !left && of.reached(proofs) {
				return fmt.Sprintf("set up %v, show %v", add, shown)
			}
		}
	}
	return ""
}

func subsets(all []string) (sets [][]string) {
	for bits := range 1 << len(all) {
		var set []string
		for i, m := range all {
			if bits&(1<<i) != 0 {
				set = append(set, m)
			}
		}
		sets = append(sets, set)
	}
	return sets
}

func wasShown(proofs []Proof, method string) bool {
	return slices.ContainsFunc(proofs, func(p Proof) bool { return p.by() == method })
}

// elsewhere is a connection to another provider.
var elsewhere = Upstream("1")

func check(t *rapid.T, d Demand, proofs []Proof, has, setUp []string) {
	for _, i := range Left(d.Steps, proofs) {
		if d.Steps[i].Required {
			t.Fatalf("step %d is left by %v", i, proofs)
		}
		can := len(both(d.Steps[i].Methods, has)) == 0 && len(both(d.Steps[i].Methods, setUp)) > 0
		if d.Steps[i].Offer && can {
			t.Fatalf("step %d is not offered", i)
		}
		for _, m := range d.Steps[i].Methods {
			// It is not known whether the person is linked.
			if m != RecoveryCode && m != elsewhere && slices.Contains(has, m) && !wasShown(proofs, m) {
				t.Fatalf("step %d is dropped, and the person has %s", i, m)
			}
		}
	}
	if d.Class != "" && !Meets(Class(proofs), d.Class) {
		t.Fatalf("%v does not reach %s", proofs, d.Class)
	}
}
