package proof

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/idplatform/idplatform/pkg/clock"
)

var (
	password = Proof{Method: "password", Kinds: []Kind{Knows}, Channel: "password", AMR: []string{"pwd"}}
	app      = Proof{Method: "otp", Kinds: []Kind{Has}, Channel: "app", AMR: []string{"otp"}}
	mail     = Proof{Method: "mail", Kinds: []Kind{Has}, Channel: "mail:li@acme.test", AMR: []string{"otp"}}
	stick    = Proof{Method: "webauthn", Kinds: []Kind{Has}, Channel: "key", AMR: []string{"hwk"}}
	passkey  = Proof{Method: "webauthn", Kinds: []Kind{Has, Is}, Channel: "key", AMR: []string{"hwk", "user"}}
	trusted  = Proof{Method: "enterprise", Kinds: []Kind{Knows, Has}, Channel: "upstream:1", AMR: []string{"mfa"}}
	upstream = Proof{Method: "enterprise", Kinds: []Kind{Knows}, Channel: "upstream:1", AMR: []string{"pwd"}}
	every    = []Proof{password, app, mail, stick, passkey, trusted, upstream}
)

func TestClass(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		proofs []Proof
		class  string
		amr    []string
	}{
		"none":                        {nil, "", nil},
		"a password":                  {[]Proof{password}, OneFactor, []string{"pwd"}},
		"a password twice":            {[]Proof{password, password}, OneFactor, []string{"pwd"}},
		"a password and an app":       {[]Proof{password, app}, TwoFactors, []string{"mfa", "otp", "pwd"}},
		"two things":                  {[]Proof{mail, app}, OneFactor, []string{"otp"}},
		"two passwords of two places": {[]Proof{password, upstream}, OneFactor, []string{"pwd"}},
		"a key without its user":      {[]Proof{stick}, OneFactor, []string{"hwk"}},
		"a key with its user":         {[]Proof{passkey}, PhishingResistant, []string{"hwk", "mfa", "user"}},
		"a password and a key": {
			[]Proof{password, stick}, PhishingResistant, []string{"hwk", "mfa", "pwd"},
		},
		"one key, without and with": {
			[]Proof{stick, passkey}, PhishingResistant, []string{"hwk", "mfa", "user"},
		},
		"another provider's two factors": {[]Proof{trusted}, TwoFactors, []string{"mfa"}},
		"another provider's one, and a key": {
			[]Proof{upstream, stick}, PhishingResistant, []string{"hwk", "mfa", "pwd"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.class, Class(c.proofs))
			require.Equal(t, c.amr, AMR(c.proofs))
			slices.Reverse(c.proofs)
			require.Equal(t, c.class, Class(c.proofs), "in another order")
		})
	}
}

func TestMeets(t *testing.T) {
	t.Parallel()
	require.True(t, Meets(PhishingResistant, TwoFactors))
	require.True(t, Meets(TwoFactors, TwoFactors))
	require.False(t, Meets(OneFactor, TwoFactors))
	require.False(t, Meets("", OneFactor))
	require.False(t, Meets(PhishingResistant, "urn:example:gold"))
}

// Whatever the proofs and their order: two factors are two kinds over two channels, or one proof of two kinds. More
// proofs never reach less, and a proof over a channel that was used already counts only by what it shows alone.
func TestClassesOfAnyProofs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		proofs := rapid.SliceOfN(rapid.SampledFrom(every), 0, 5).Draw(t, "proofs")
		two, phishingResistant := false, false
		for _, p := range proofs {
			phishingResistant = phishingResistant || p.Channel == "key"
			for _, a := range p.Kinds {
				for _, q := range proofs {
					for _, b := range q.Kinds {
						sameProof := p.Method == q.Method && slices.Equal(p.Kinds, q.Kinds)
						two = two || a != b && (sameProof || p.Channel != q.Channel)
					}
				}
			}
		}
		want := ""
		switch {
		case two && phishingResistant:
			want = PhishingResistant
		case two:
			want = TwoFactors
		case len(proofs) > 0:
			want = OneFactor
		}
		if got := Class(proofs); got != want {
			t.Fatalf("%q, want %q", got, want)
		}
		more := append(slices.Clone(proofs), rapid.SampledFrom(every).Draw(t, "one more"))
		if len(proofs) > 0 && !Meets(Class(more), Class(proofs)) {
			t.Fatalf("one proof more reaches less: %q", Class(more))
		}
		again := slices.Concat(proofs, proofs)
		if Class(again) != want {
			t.Fatalf("the same proofs again reach %q", Class(again))
		}
	})
}

// The steps that are left are those of the best way to give each channel to at most one step, by trying all ways.
func TestLeftOfAnySteps(t *testing.T) {
	t.Parallel()
	methods := []string{"password", "otp", "mail", "webauthn", "upstream:1"}
	rapid.Check(t, func(t *rapid.T) {
		steps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Step {
			return Step{
				Required: rapid.Bool().Draw(t, "required"),
				Methods:  rapid.SliceOfN(rapid.SampledFrom(methods), 0, 3).Draw(t, "methods"),
			}
		}), 0, 4).Draw(t, "steps")
		proofs := rapid.SliceOfN(rapid.SampledFrom(every), 0, 4).Draw(t, "proofs")
		want := best(steps, proofs)
		got := Left(steps, proofs)
		if !slices.Equal(got, want) {
			t.Fatalf("left are %v, want %v", got, want)
		}
	})
}

// best tries each way in which channels can complete steps, and returns the steps that the best one leaves.
func best(steps []Step, proofs []Proof) (left []int) {
	channels := map[string]bool{}
	done := make([]bool, len(steps))
	first := true
	var try func(i int)
	try = func(i int) {
		if i == len(steps) {
			var now []int
			for j, is := range done {
				if !is {
					now = append(now, j)
				}
			}
			if first || better(steps, now, left) {
				left, first = now, false
			}
			return
		}
		try(i + 1)
		for _, p := range proofs {
			if channels[p.Channel] || !slices.Contains(steps[i].Methods, p.by()) {
				continue
			}
			channels[p.Channel], done[i] = true, true
			try(i + 1)
			channels[p.Channel], done[i] = false, false
		}
	}
	try(0)
	return left
}

// better compares what two ways leave: the first step that only one of them leaves decides, a required one before
// others.
func better(steps []Step, a, b []int) bool {
	for _, required := range []bool{true, false} {
		for i, step := range steps {
			inA, inB := slices.Contains(a, i), slices.Contains(b, i)
			if step.Required == required && inA != inB {
				return inB
			}
		}
	}
	return false
}

// A credential has one proof, the newest. One proof more never reaches less.
func TestAdd(t *testing.T) {
	t.Parallel()
	newer := password
	newer.Time = clock.FromMillis(7)
	before := []Proof{password, app}
	require.Equal(t, []Proof{app, newer}, Add(before, newer))
	require.Equal(t, []Proof{password, app}, before)
	require.Equal(t, []Proof{password, app, stick}, Add(before, stick))
	other := stick
	other.Credential = "factor:8"
	require.Equal(t, PhishingResistant, Class(Add([]Proof{passkey}, other)), "another key, without its user")
}

func TestTimeSet(t *testing.T) {
	t.Parallel()
	set := clock.FromMillis(7)
	require.Equal(t, set, TimeSet([]Proof{app, ByPassword(clock.FromMillis(9), set)}, Password))
	require.True(t, TimeSet([]Proof{app}, Password).IsZero())
	require.True(t, RestsOn([]Proof{ByPassword(set, clock.Time{})}, Password, set), "it is not known when it was set")
}
