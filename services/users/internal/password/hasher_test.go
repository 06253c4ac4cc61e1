package password

import (
	"context"
	"encoding/base64"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/testkit/leaks"
	"github.com/idplatform/idplatform/pkg/testkit/rounds"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// newCheap makes a Hasher that hashes fast.
func newCheap(t testing.TB) *Hasher {
	h, err := New(Config{Memory: 32, Iterations: 1, MaxConcurrent: 2, MaxWaiting: 2})
	require.NoError(t, err)
	return h
}

func TestDefaultCost(t *testing.T) {
	t.Parallel()
	h, err := New(Config{})
	require.NoError(t, err)
	hash, err := h.Hash(t.Context(), "correct horse")
	require.NoError(t, err)
	require.Regexp(t, `^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$`, hash)
	ok, rehash, err := h.Verify(t.Context(), hash, "correct horse")
	require.NoError(t, err)
	require.True(t, ok)
	require.False(t, rehash)
	again, err := h.Hash(t.Context(), "correct horse")
	require.NoError(t, err)
	require.NotEqual(t, hash, again, "salted")
}

func TestConfigIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]Config{
		"less than 8 KiB a lane": {Memory: 31, Parallelism: 4},
		"too much memory":        {Memory: maxMemory + 1},
		"too many passes":        {Memory: maxMemory, Iterations: 5},
		"negative":               {MaxConcurrent: -1},
	} {
		_, err := New(c)
		require.Error(t, err, name)
	}
}

func TestOnlyTheRightPasswordMatches(t *testing.T) {
	t.Parallel()
	h := newCheap(t)
	rapid.Check(t, func(t *rapid.T) {
		right, wrong := rapid.String().Draw(t, "right"), rapid.String().Draw(t, "wrong")
		hash, err := h.Hash(context.Background(), right)
		require.NoError(t, err)
		require.NoError(t, ParseHash(hash))
		ok, rehash, err := h.Verify(context.Background(), hash, right)
		require.NoError(t, err)
		require.True(t, ok)
		require.False(t, rehash)
		ok, rehash, err = h.Verify(context.Background(), hash, wrong)
		require.NoError(t, err)
		require.Equal(t, normalize(right) == normalize(wrong), ok)
		require.False(t, rehash)
	})
}

// A password is the same however a keyboard composes it. Hashes of the typed bytes, made by other systems or earlier,
// still verify.
func TestPasswordsAreNormalised(t *testing.T) {
	t.Parallel()
	h := newCheap(t)
	hash, err := h.Hash(t.Context(), "Ame\u0301lie ﬁ ＡＢＣ")
	require.NoError(t, err)
	for _, typed := range []string{"Ame\u0301lie ﬁ ＡＢＣ", "Am\u00e9lie fi ABC", "Am\u00e9lie ﬁ ＡＢＣ"} {
		ok, rehash, err := h.Verify(t.Context(), hash, typed)
		require.NoError(t, err)
		require.True(t, ok && !rehash, typed)
	}
	ok, _, err := h.Verify(t.Context(), hash, "Amelie fi ABC")
	require.NoError(t, err)
	require.False(t, ok)

	raw := newArgon2id(h.params, make([]byte, argon2SaltSize), "Ame\u0301lie").String()
	ok, rehash, err := h.Verify(t.Context(), raw, "Ame\u0301lie")
	require.NoError(t, err)
	require.True(t, ok && rehash, "its normal form is hashed at the next success")
	ok, _, err = h.Verify(t.Context(), raw, "Am\u00e9lie")
	require.NoError(t, err)
	require.False(t, ok)
}

// Dummy does what Verify does for a password in two forms: the time does not tell which users exist.
func TestDummyHashesAsOftenAsVerify(t *testing.T) {
	h, err := New(Config{Memory: 1 << 10, Iterations: 1}) // not parallel: it counts allocations
	require.NoError(t, err)
	hash, err := h.Hash(t.Context(), "right")
	require.NoError(t, err)
	allocated := func(do func()) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		do()
		runtime.ReadMemStats(&after)
		return (after.TotalAlloc - before.TotalAlloc) >> 20
	}
	for password, hashes := range map[string]uint64{"wrong": 1, "wro\u0301ng": 2} {
		require.Equal(t, hashes, allocated(func() { _, _, err = h.Verify(t.Context(), hash, password) }), password)
		require.NoError(t, err)
		require.Equal(t, hashes, allocated(func() { err = h.Dummy(t.Context(), password) }), password)
		require.NoError(t, err)
	}
}

// Hashes made by others: the reference implementation of argon2, PHP, Python's passlib and hashlib.
var foreign = map[string]struct{ password, hash string }{
	"argon2id": {"password",
		"$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4"},
	"argon2i": {"password",
		"$argon2i$v=19$m=256,t=2,p=1$c29tZXNhbHQ$iekCn0Y3spW+sCcFanM2xBT63UP2sghkUoHLIUpWRS8"},
	"bcrypt 2y": {"rasmuslerdorf", "$2y$07$usesomesillystringfore2uDLvp1Ii2e./U9C8sBjqp8I90dH6hi"},
	"bcrypt 2b": {"secret", "$2b$12$EixZaYVK1fsbw1ZfbX3OXePaWxn96p36WQoeG6Lruj3vjPGga31lW"},
	"bcrypt 2a": {"allmine", "$2a$10$XajjQvNhvvRt5GSeFk1xFeyqRrsxkhBkUiQeg0dt.wU1qD4aFDcga"},
	"PBKDF2 passlib": {"password",
		"$pbkdf2-sha256$29000$0ZrzXitFSGltTQnBWOsdYw$CXxm4mpHrhpnD69Aa5N1m/HaVFXoZg34blhwCiQgrKY"},
	"PBKDF2 passlib SHA-1": {"密码🔑pass", "$pbkdf2$1000$8PHy8/T19vf4.fr7/P3./w$mxib2bkL4UQA7DjwPKeKTsuffrg"},
	"PBKDF2 SHA-1":         {"密码🔑pass", "$pbkdf2-sha1$1000$8PHy8/T19vf4.fr7/P3./w$mxib2bkL4UQA7DjwPKeKTsuffrg"},
	"PBKDF2 passlib SHA-512": {"密码🔑pass",
		"$pbkdf2-sha512$1000$8PHy8/T19vf4.fr7/P3./w$70LIJXq5n/NQRsJStg7DfernE7xFGAi1llV/.Zf0bLPVYbhl3kJu3XEPuZvR7Z/25GMU3Rp3NHj3E5mkb8G5sQ"},
	"PBKDF2 PHC": {"密码🔑pass",
		"$pbkdf2-sha256$i=1000,l=32$8PHy8/T19vf4+fr7/P3+/w$KsPhSj2U8lAmhBtOPmykJT0WrbME0zvRr1XJnoXgesY"},
	"PBKDF2 PHC without l": {"密码🔑pass",
		"$pbkdf2-sha256$i=1000$8PHy8/T19vf4+fr7/P3+/w$KsPhSj2U8lAmhBtOPmykJT0WrbME0zvRr1XJnoXgesY"},
	"scrypt": {"密码🔑pass",
		"$scrypt$ln=10,r=8,p=2$8PHy8/T19vf4+fr7/P3+/w$yW1nts6ppi23f/z9NRh9oLQZh0nud/Na9WTrgcb18Ec"},
	"scrypt passlib, 64 MiB": {"password",
		"$scrypt$ln=16,r=8,p=1$aM15713r3Xsvxbi31lqr1Q$nFNh2CVHVjNldFVKDHDlm4CbdRSCdEBsjjJxD+iCs5E"},
}

func TestForeignHashes(t *testing.T) {
	t.Parallel()
	rounds.Alone(t)
	h := newCheap(t)
	for name, test := range foreign {
		require.NoError(t, ParseHash(test.hash), name)
		ok, rehash, err := h.Verify(context.Background(), test.hash, test.password)
		require.NoError(t, err, name)
		require.True(t, ok, name)
		require.True(t, rehash, name)
	}
	for _, name := range []string{"argon2id", "argon2i", "bcrypt 2y", "PBKDF2 PHC", "PBKDF2 SHA-1", "scrypt"} {
		for _, wrong := range []string{"", "passwor", foreign[name].password + "x",
			strings.ToUpper(foreign[name].password)} {
			ok, rehash, err := h.Verify(context.Background(), foreign[name].hash, wrong)
			require.NoError(t, err, name)
			require.False(t, ok || rehash, name)
		}
	}
}

func TestWeakerHashesAreReplaced(t *testing.T) {
	t.Parallel()
	h := newCheap(t)
	hash, err := h.Hash(t.Context(), "p")
	require.NoError(t, err)
	for name, c := range map[string]Config{
		"memory":     {Memory: 64, Iterations: 1},
		"iterations": {Memory: 32, Iterations: 2},
		"lanes":      {Memory: 32, Iterations: 1, Parallelism: 2},
	} {
		other, err := New(c)
		require.NoError(t, err)
		ok, rehash, err := other.Verify(t.Context(), hash, "p")
		require.NoError(t, err)
		require.True(t, ok && rehash, name)
	}
}

// A bcrypt hash stays while nobody knows what followed the 72 bytes that it depends on.
func TestBcryptSeesTheFirst72Bytes(t *testing.T) {
	t.Parallel()
	h := newCheap(t)
	long := strings.Repeat("密", 24) // 72 bytes
	// The hash of 72 bytes is the one that other implementations make of any longer password that starts with them.
	hash := bcryptOf(t, long)
	for password, want := range map[string]bool{
		long: true, long + "anything": true, long[:71]: false, "x" + long: false,
	} {
		ok, rehash, err := h.Verify(t.Context(), hash, password)
		require.NoError(t, err)
		require.Equal(t, want, ok)
		require.False(t, rehash)
	}
	ok, rehash, err := h.Verify(t.Context(), bcryptOf(t, long[:71]), long[:71])
	require.NoError(t, err)
	require.True(t, ok && rehash, "the whole password")
}

func TestHostileHashesAreRefused(t *testing.T) {
	t.Parallel()
	h := newCheap(t)
	salt, key := "c29tZXNhbHQ", "nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4"
	tail := "$" + salt + "$" + key
	for _, hash := range []string{
		"", "$", "$$", "$$$$$$", "plain", "$1$abc$def", "{SSHA}abc", "$argon2id", "$argon2d$v=19$m=256,t=2,p=1" + tail,
		"$argon2id$v=19$m=4194304,t=1,p=1" + tail, "$argon2id$v=19$m=4294967295,t=4294967295,p=255" + tail,
		"$argon2id$v=19$m=256,t=1000000,p=1" + tail, "$argon2id$v=19$m=4096,t=1,p=200" + tail,
		"$argon2id$v=19$m=256,t=1,p=257" + tail,
		"$argon2id$v=19$m=0,t=1,p=1" + tail, "$argon2id$v=19$m=256,t=0,p=1" + tail, "$argon2id$v=19$m=256,t=1,p=0" +
			tail,
		"$argon2id$v=19$m=-1,t=1,p=1" + tail, "$argon2id$v=19$m=256,t=1" + tail, "$argon2id$v=19$m=256,m=256,t=1,p=1" +
			tail,
		"$argon2id$v=19$m=256,t=1,p=1,data=AAAA" + tail, "$argon2id$v=16$m=256,t=1,p=1" + tail,
		"$argon2id$m=256,t=1,p=1" + tail,
		"$argon2id$v=19$m=256,t=1,p=1" + tail + "$", "$argon2id$v=19$m=256,t=1,p=1$" + salt + "$" + key[:3],
		"$argon2id$v=19$m=256,t=1,p=1$" + salt + "$", "$argon2id$v=19$m=256,t=1,p=1$$" + key,
		"$argon2id$v=19$m=256,t=1,p=1$AAAA$" + key,
		"$argon2id$v=19$m=256,t=1,p=1$" + salt + "$" + strings.Repeat("A", 200), "$argon2id$v=19$m=256,t=1,p=1$" +
			salt + "$\n" + key,
		"$argon2id$v=19$m=256,t=1,p=1$" + salt + "$" + key[:42] + "5", // stray bits after the last byte
		"$argon2id$v=19$m=256,t=1,p=1" + tail + strings.Repeat(" ", 10), strings.Repeat("$", 600),
		"$2b$31$EixZaYVK1fsbw1ZfbX3OXePaWxn96p36WQoeG6Lruj3vjPGga31lW",
		"$2b$15$EixZaYVK1fsbw1ZfbX3OXePaWxn96p36WQoeG6Lruj3vjPGga31lW",
		"$2b$03$EixZaYVK1fsbw1ZfbX3OXePaWxn96p36WQoeG6Lruj3vjPGga31lW",
		"$2x$10$EixZaYVK1fsbw1ZfbX3OXePaWxn96p36WQoeG6Lruj3vjPGga31lW",
		"$2b$10$EixZaYVK1fsbw1ZfbX3OXePaWxn96p36WQoeG6Lruj3vjPGga31l",
		"$2b$10$EixZaYVK1fsbw1ZfbX3OXePaWxn96p36WQoeG6Lruj3vjPGga31lWx",
		"$pbkdf2-sha256$0" + tail, "$pbkdf2-sha256$4000000" + tail, "$pbkdf2-sha256$99999999999999999999" + tail,
		"$pbkdf2-sha256$i=3000000,l=64$" + salt + "$" + strings.Repeat("A", 86), "$pbkdf2-sha256$i=1000,l=20" + tail,
		"$pbkdf2-md5$1000" + tail,
		"$scrypt$ln=40,r=8,p=1" + tail, "$scrypt$ln=4294967295,r=4294967295,p=4294967295" + tail,
		"$scrypt$ln=19,r=8,p=1" + tail,
		"$scrypt$ln=16,r=8,p=200" + tail, "$scrypt$ln=18,r=8,p=3" + tail, "$scrypt$ln=0,r=8,p=1" + tail,
		"$scrypt$ln=10,r=0,p=1" + tail, "$scrypt$ln=10,r=8,p=0" + tail,
	} {
		require.Error(t, ParseHash(hash), hash)
		ok, rehash, err := h.Verify(t.Context(), hash, "password")
		require.Error(t, err, hash)
		require.False(t, ok || rehash, hash)
		require.Equal(t, apperr.Internal, apperr.KindOf(err))
		if len(hash) > 20 {
			require.NotContains(t, err.Error(), key)
		}
	}
}

func TestCallersBeyondTheQueueAreRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newCheap(t) // 2 run, 2 wait
		release := make(chan struct{})
		done := make(chan error, 4)
		var running atomic.Int64
		for range 4 {
			go func() { done <- h.run(context.Background(), 1, func() { running.Add(1); <-release }) }()
			synctest.Wait()
		}
		require.EqualValues(t, 2, running.Load())

		_, err := h.Hash(context.Background(), "p")
		require.Equal(t, apperr.Unavailable, apperr.KindOf(err))
		require.Equal(t, apperr.Unavailable, apperr.KindOf(h.Dummy(context.Background(), "p")))
		_, _, err = h.Verify(context.Background(), foreign["bcrypt 2y"].hash, "p")
		require.Equal(t, apperr.Unavailable, apperr.KindOf(err))

		close(release)
		for range 4 {
			require.NoError(t, <-done)
		}
		require.EqualValues(t, 4, running.Load())
		_, err = h.Hash(context.Background(), "p")
		require.NoError(t, err, "there is room again")
	})
}

func TestHeavyHashesRunAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newCheap(t)
		heavy, light := make(chan struct{}), make(chan struct{})
		done := make(chan error, 2)
		started := false
		go func() { done <- h.run(context.Background(), maxMemory, func() { <-heavy }) }()
		synctest.Wait()
		go func() { done <- h.run(context.Background(), 0, func() { started = true; <-light }) }()
		synctest.Wait()
		require.False(t, started)
		close(heavy)
		require.NoError(t, <-done)
		synctest.Wait()
		require.True(t, started)
		close(light)
		require.NoError(t, <-done)
	})
}

func FuzzParseHash(f *testing.F) {
	for _, test := range foreign {
		f.Add(test.hash)
	}
	f.Add("$argon2id$v=19$m=4294967295,t=4294967295,p=255$c29tZXNhbHQ$AAAA")
	f.Fuzz(func(t *testing.T, s string) {
		h, err := parse(s)
		if err != nil {
			require.Contains(t, []error{errText, errScheme, errArgon2, errCost, errBcrypt, errPBKDF2, errScrypt,
				errSalt, errKey, errBase64, errExpensive}, err, "it may repeat the hash")
			return
		}
		require.LessOrEqual(t, h.memory(), int64(maxMemory))
		switch h := h.(type) {
		case *argon2Hash:
			require.NoError(t, h.check())
			require.LessOrEqual(t, len(h.key), maxKey)
			if h.id {
				again, err := parse(h.String())
				require.NoError(t, err)
				require.Equal(t, h, again)
			}
		case *pbkdf2Hash:
			require.LessOrEqual(t, h.iterations, maxPBKDF2Work)
		case *scryptHash:
			require.LessOrEqual(t, h.memory()*int64(h.p), int64(maxWork/2))
		}
		if h.memory() < 1024 {
			if p, ok := h.(*argon2Hash); ok && p.iterations < 10 {
				h.match("password") // must not panic
			}
		}
	})
}

func BenchmarkHash(b *testing.B) {
	h, err := New(Config{})
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := h.Hash(context.Background(), "correct horse"); err != nil {
			b.Fatal(err)
		}
	}
}

// The highest cost that a hostile hash can have.
func BenchmarkCostliest(b *testing.B) {
	tail := "$c29tZXNhbHQ$" + base64.RawStdEncoding.EncodeToString(make([]byte, 32))
	for name, hash := range map[string]string{
		"argon2id": "$argon2id$v=19$m=262144,t=4,p=1" + tail,
		"scrypt":   "$scrypt$ln=18,r=8,p=2" + tail,
		"pbkdf2":   "$pbkdf2-sha512$3000000" + tail,
		"bcrypt":   "$2b$14$EixZaYVK1fsbw1ZfbX3OXePaWxn96p36WQoeG6Lruj3vjPGga31lW",
	} {
		b.Run(name, func(b *testing.B) {
			h, err := parse(hash)
			require.NoError(b, err)
			for b.Loop() {
				h.match("password")
			}
		})
	}
}
