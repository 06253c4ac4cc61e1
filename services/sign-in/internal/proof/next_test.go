package proof

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var (
	ofApp   = mustExample(App)
	ofCodes = mustExample(RecoveryCode)
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

func TestNext(t *testing.T) {
	t.Parallel()
	var (
		onlyPassword = []string{Password}
		withApp      = []string{Password, App, RecoveryCode}
		steps        = []Step{required(Password), optional(App, Passkey, RecoveryCode)}
		known        = func(methods []string) Person { return Person{Known: true, Methods: methods} }
		nobody       = Person{}
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

// orEmpty makes lists without strings nil.
func orEmpty(n Next) Next {
	for _, list := range []*[]string{&n.Show, &n.SetUp, &n.Missing} {
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
	p := Person{Known: true, Methods: []string{Password, App, RecoveryCode}}
	require.Equal(t, []string{Password}, d.Next([]Proof{ofApp}, p, nil).Show)
	require.True(t, d.Next([]Proof{password}, p, nil).Done())
}

// Whoever has a factor shows one before setting up another.
func TestAFactorComesBeforeAnotherIsSetUp(t *testing.T) {
	t.Parallel()
	d := Demand{Steps: []Step{required(Password), required(Passkey)}}
	p := Person{Known: true, Methods: []string{Password, App, RecoveryCode}}
	can := []string{App, Passkey}
	require.Equal(t, []string{App, RecoveryCode}, d.Next([]Proof{password}, p, can).Show)
	require.Equal(t, []string{Passkey}, d.Next([]Proof{password, ofApp}, p, can).SetUp)
	require.Equal(t, []string{Passkey}, d.Next([]Proof{password, ofCodes}, p, can).SetUp)
	p.Methods = p.Methods[:1]
	require.Equal(t, []string{Passkey}, d.Next([]Proof{password}, p, can).SetUp)
}

// Whatever is demanded and whoever signs in: doing what is due, one after the other, comes to an end, and what it comes
// to is what was demanded.
func TestNextComesToAnEnd(t *testing.T) {
	t.Parallel()
	methods := []string{Password, App, RecoveryCode, Passkey, "mail"}
	rapid.Check(t, func(t *rapid.T) {
		d := Demand{
			Steps: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Step {
				return Step{
					Required: rapid.Bool().Draw(t, "required"),
					Methods:  rapid.SliceOfN(rapid.SampledFrom(methods), 0, 3).Draw(t, "methods"),
				}
			}), 1, 3).Draw(t, "steps"),
			Class:   rapid.SampledFrom([]string{"", "", OneFactor, TwoFactors, PhishingResistant}).Draw(t, "class"),
			Factors: rapid.SliceOfN(rapid.SampledFrom(methods[1:]), 0, 2).Draw(t, "factors"),
			NoSetUp: rapid.Bool().Draw(t, "no set-up"),
			Wishes:  rapid.SliceOfN(rapid.SampledFrom(classes), 0, 2).Draw(t, "wishes"),
		}
		p := Person{}
		has := []string{Password}
		hadFactor := rapid.Bool().Draw(t, "has an app")
		if hadFactor {
			has = append(has, App, RecoveryCode)
		}
		var proofs []Proof
		for range 10 {
			next := d.Next(proofs, p, []string{App})
			switch {
			case next.Done():
				check(t, d, proofs, has)
				return
			case len(next.Missing) > 0:
				return
			case len(next.SetUp) > 0:
				if hadFactor && !slices.ContainsFunc(proofs, func(p Proof) bool { return IsFactor(p.Method) }) {
					t.Fatal("a factor is set up before the one that is there was shown")
				}
				if !p.Known || slices.Contains(has, App) {
					t.Fatalf("an app is to be set up again, or for nobody: %v", has)
				}
				has = append(has, App, RecoveryCode)
				proofs = Add(proofs, ofApp)
			case !p.Known && len(both(next.Show, has)) == 0: // the person cannot begin
				return
			case !p.Known:
				proofs = Add(proofs, mustExample(rapid.SampledFrom(both(next.Show, has)).Draw(t, "begins")))
			default:
				m := rapid.SampledFrom(next.Show).Draw(t, "shows")
				if !slices.Contains(has, m) || wasShown(proofs, m) {
					t.Fatalf("%s is asked for, of a person who has %v, after %v", m, has, proofs)
				}
				proofs = Add(proofs, mustExample(m))
			}
			p = Person{Known: true, Methods: has}
		}
		t.Fatalf("something is always due: %v", proofs)
	})
}

func wasShown(proofs []Proof, method string) bool {
	return slices.ContainsFunc(proofs, func(p Proof) bool { return p.Method == method })
}

func check(t *rapid.T, d Demand, proofs []Proof, has []string) {
	for _, i := range Left(d.Steps, proofs) {
		if d.Steps[i].Required {
			t.Fatalf("step %d is left by %v", i, proofs)
		}
		for _, m := range d.Steps[i].Methods {
			if slices.Contains(has, m) && !wasShown(proofs, m) {
				t.Fatalf("step %d is dropped, and the person has %s", i, m)
			}
		}
	}
	if d.Class != "" && !Meets(Class(proofs), d.Class) {
		t.Fatalf("%v does not reach %s", proofs, d.Class)
	}
}
