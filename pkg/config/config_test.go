package config_test

import (
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/config"
	"github.com/idplatform/idplatform/pkg/secret"
)

type settings struct {
	Common  `mapstructure:",squash"`
	NATS    natsSettings      `mapstructure:"nats"`
	Name    string            `mapstructure:"name" doc:"What to call it"`
	On      bool              `mapstructure:"on"`
	Count   int               `mapstructure:"count"`
	Small   int8              `mapstructure:"small"`
	Natural uint16            `mapstructure:"natural"`
	Ratio   float64           `mapstructure:"ratio"`
	Wait    time.Duration     `mapstructure:"wait" doc:"How long"`
	Hosts   []string          `mapstructure:"hosts"`
	Routes  map[string]string `mapstructure:"routes"`
	Key     secret.String     `mapstructure:"key" doc:"Seals"`
	Level   slog.Level        `mapstructure:"level"`
	Port    int               `mapstructure:"port"`
	Derived int               `mapstructure:"-"`
	private int
}

type Common struct {
	Listen string `mapstructure:"listen" doc:"host:port"`
}

func (c Common) Validate() error {
	if !strings.Contains(c.Listen, ":") {
		return errors.New("listen must be host:port")
	}
	return nil
}

type natsSettings struct {
	URL      string        `mapstructure:"url"`
	Password secret.String `mapstructure:"password"`
	MaxConns int           `mapstructure:"max_conns"`
}

func (n *natsSettings) Validate() error {
	var faults []error
	if n.MaxConns < 1 {
		faults = append(faults, errors.New("max_conns must be positive"))
	}
	if n.URL == "" {
		faults = append(faults, errors.New("url must be set"))
	}
	return errors.Join(faults...)
}

func defaults() settings {
	return settings{
		Common: Common{Listen: "127.0.0.1:80"}, NATS: natsSettings{URL: "nats://default", MaxConns: 4}, Name: "default",
		Wait: time.Second, Hosts: []string{"a"}, Routes: map[string]string{"a": "b"}, private: 7,
	}
}

func file(t testing.TB, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "idp.yaml")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func load(t *testing.T, o config.Options) settings {
	t.Helper()
	cfg := defaults()
	require.NoError(t, config.Load(&cfg, o))
	return cfg
}

func faults(t *testing.T, o config.Options) []string {
	t.Helper()
	cfg := defaults()
	err := config.Load(&cfg, o)
	require.Equal(t, defaults(), cfg, "a refused configuration changes nothing")
	all, ok := errors.AsType[*config.Error](err)
	require.True(t, ok, "%v", err)
	return all.Faults
}

func TestDefaultsStay(t *testing.T) {
	t.Parallel()
	require.Equal(t, defaults(), load(t, config.Options{}))
	require.Equal(t, defaults(), load(t, config.Options{File: file(t, "")}))
	require.Equal(t, defaults(), load(t, config.Options{File: file(t, "# nothing\n---\n")}))
	require.Equal(t, defaults(),
		load(t, config.Options{File: file(t, "nats:\nname:\n"), Environ: []string{"IDP_NAME=", "PATH=/bin"}}))
}

const everyType = `
listen: "[::1]:8080"
nats: {url: "nats://x:4222?a=b,c", password: "p,=ä w", max_conns: 9}
name: 0123
on: true
count: -12
small: -128
natural: 65535
ratio: 0.5
wait: 1m30s
hosts: [a.example, b.example]
routes:
  users: http://u?x=y
  Apps: http://a
key: key
level: warn
port: 8080
`

// Every type can be set by every layer.
func TestEveryType(t *testing.T) {
	t.Parallel()
	want := settings{
		Common: Common{Listen: "[::1]:8080"},
		NATS:   natsSettings{URL: "nats://x:4222?a=b,c", Password: secret.New("p,=ä w"), MaxConns: 9},
		Name:   "0123", On: true, Count: -12, Small: -128, Natural: 65535, Ratio: 0.5, Wait: 90 * time.Second,
		Hosts:  []string{"a.example", "b.example"},
		Routes: map[string]string{"users": "http://u?x=y", "Apps": "http://a"},
		Key:    secret.New("key"), Level: slog.LevelWarn, Port: 8080, private: 7,
	}
	values := map[string]string{
		"LISTEN": "[::1]:8080", "NATS_URL": "nats://x:4222?a=b,c", "NATS_PASSWORD": "p,=ä w", "NATS_MAX_CONNS": "9",
		"NAME": "0123", "ON": "true",
		"COUNT": "-12", "SMALL": "-128", "NATURAL": "65535", "RATIO": "0.5", "WAIT": "1m30s",
		"HOSTS":  "a.example, b.example,",
		"ROUTES": "users=http://u?x=y, Apps=http://a", "KEY": "key", "LEVEL": "WARN", "PORT": "8080",
	}
	var environ, fromFiles, args, secrets []string
	dir := t.TempDir()
	for _, name := range slices.Sorted(maps.Keys(values)) {
		environ = append(environ, "IDP_"+name+"="+values[name])
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(values[name]+"\n"), 0o600))
		fromFiles = append(fromFiles, "IDP_"+name+"_FILE="+path)
		if name == "KEY" || name == "NATS_PASSWORD" {
			secrets = append(secrets, "IDP_"+name+"="+values[name])
			continue
		}
		args = append(args, "--"+strings.ToLower(strings.ReplaceAll(name, "_", "-"))+"="+values[name])
	}
	for name, o := range map[string]config.Options{
		"file":              {File: file(t, everyType)},
		"file named by env": {File: "/nowhere", Environ: []string{"IDP_CONFIG=" + file(t, everyType)}},
		"file named by flag": {
			Environ: []string{"IDP_CONFIG=/nowhere"}, Args: []string{"--config", file(t, everyType)},
		},
		"environment":          {Environ: environ},
		"environment by files": {Environ: fromFiles},
		"flags":                {Environ: secrets, Args: args},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, want, load(t, o))
		})
	}
}

func TestLaterLayersWin(t *testing.T) {
	t.Parallel()
	yaml := "name: file\ncount: 1\nport: 1\nnats: {url: file, max_conns: 7}\n" +
		"routes: {x: file, y: file}\nhosts: [x, y]\non: true\n"
	environ := []string{"IDP_COUNT=2", "IDP_PORT=2", "IDP_NATS_URL=env", "IDP_ROUTES=x=env", "IDP_HOSTS=z", "IDP_ON=0"}
	got := load(t, config.Options{File: file(t, yaml), Environ: environ, Args: []string{"--port", "3", "--on"}})
	want := defaults()
	want.Name, want.Count, want.Port, want.On = "file", 2, 3, true
	want.NATS.URL, want.NATS.MaxConns = "env", 7
	want.Routes, want.Hosts = map[string]string{"x": "env"}, []string{"z"}
	require.Equal(t, want, got)
	require.Equal(t, "b", defaults().Routes["a"])
}

func TestZeroValuesWin(t *testing.T) {
	t.Parallel()
	got := load(t, config.Options{File: file(t, `{name: "", hosts: [], routes: {}, wait: 0s}`)})
	require.Empty(t, got.Name)
	require.Empty(t, got.Hosts)
	require.Empty(t, got.Routes)
	require.Zero(t, got.Wait)
	require.Empty(t, load(t, config.Options{Args: []string{"--name="}}).Name)
}

// faultCase is a faulty configuration and all its faults. None of them may repeat the value s3cret.
type faultCase struct {
	yaml    string
	environ []string
	args    []string
	want    []string
}

func requireFaults(t *testing.T, cases map[string]faultCase) {
	t.Helper()
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := config.Options{Program: "idp-x", Environ: tt.environ, Args: tt.args}
			if tt.yaml != "" {
				o.File = file(t, tt.yaml)
			}
			got := faults(t, o)
			for i := range got {
				require.NotContains(t, got[i], "s3cret")
			}
			require.Equal(t, tt.want, got)
		})
	}
}

func TestFaultsOfTheFile(t *testing.T) {
	t.Parallel()
	requireFaults(t, map[string]faultCase{
		"unknown key": {
			yaml: "name: x\nnatz: 1\nnats:\n  ulr: x\n",
			want: []string{"idp.yaml:2: natz is not known",
				"idp.yaml:4: nats.ulr is not known (did you mean nats.url?)"},
		},
		"dotted key": {
			yaml: "nats.url: x\nnats: {url: y}\n", want: []string{"idp.yaml:2: nats.url appears twice"},
		},
		"key in capitals": {
			yaml: "Name: x\n", want: []string{"idp.yaml:1: Name is not known (did you mean name?)"},
		},
		"key twice":           {yaml: "name: x\nname: y\n", want: []string{"idp.yaml:2: name appears twice"}},
		"value for a section": {yaml: "nats: s3cret\n", want: []string{"idp.yaml:1: nats must hold keys and values"}},
		"section for a value": {yaml: "name: {x: s3cret}\n", want: []string{"idp.yaml:1 name must be a single value"}},
		"list for a value":    {yaml: "count: [1]\n", want: []string{"idp.yaml:1 count must be a single value"}},
		"list for a secret":   {yaml: "key: [s3cret]\n", want: []string{"idp.yaml:1 key must be a single value"}},
		"map for a list":      {yaml: "hosts: {a: s3cret}\n", want: []string{"idp.yaml:1 hosts must be a list"}},
		"list for a map": {
			yaml: "routes: [s3cret]\n", want: []string{"idp.yaml:1 routes must be like name=value,other=value"},
		},
		"too deep": {
			yaml: "routes: {a: {b: s3cret}}\n",
			want: []string{"idp.yaml:1: routes must be a single value, a list of values or a map of values"},
		},
		"alias": {
			yaml: "name: &a s3cret\nlisten: *a\n",
			want: []string{"idp.yaml:2: listen must be a single value, a list of values or a map of values"},
		},
		"not a mapping": {yaml: "s3cret", want: []string{"idp.yaml:1: the file must hold keys and values"}},
		"bad YAML":      {yaml: "name: x\n\tname: s3cret", want: []string{"idp.yaml:2: is not valid YAML"}},
		"two documents": {
			yaml: "name: x\n---\nname: s3cret\n",
			want: []string{"idp.yaml:2: has more than one document, or is not valid YAML to its end"},
		},
	})
}

func TestFaultsOfTheEnvironment(t *testing.T) {
	t.Parallel()
	big := file(t, strings.Repeat("#", 1<<20+1))
	requireFaults(t, map[string]faultCase{
		"unknown variable": {
			environ: []string{"IDP_NAT_URL=s3cret", "IDP_WHATEVER=s3cret", "idp_name=x"},
			want:    []string{"IDP_NAT_URL is not known (did you mean IDP_NATS_URL?)", "IDP_WHATEVER is not known"},
		},
		"unknown file": {
			environ: []string{"IDP_NAMES_FILE=/s3cret"}, want: []string{"IDP_NAMES_FILE is not known"},
		},
		"configuration's file": {
			environ: []string{"IDP_CONFIG_FILE=/s3cret"}, want: []string{"IDP_CONFIG_FILE is not known"},
		},
		"value and file": {
			environ: []string{"IDP_KEY=s3cret", "IDP_KEY_FILE=/s3cret"},
			want:    []string{"IDP_KEY and IDP_KEY_FILE are both set"},
		},
		"missing secret file": {
			environ: []string{"IDP_KEY_FILE=/s3cret"},
			want:    []string{"IDP_KEY_FILE: its file cannot be read: no such file or directory"},
		},
		"directory": {
			environ: []string{"IDP_KEY_FILE=" + t.TempDir()},
			want:    []string{"IDP_KEY_FILE: its file cannot be read: is a directory"},
		},
		"large file": {
			environ: []string{"IDP_KEY_FILE=" + big},
			want:    []string{"IDP_KEY_FILE: its file cannot be read: has more than 1048576 bytes"},
		},
		"the mask": {
			environ: []string{"IDP_KEY=******"},
			want:    []string{"IDP_KEY is the mask that stands for a secret, not a secret"},
		},
	})
}

func TestFaultsOfFlags(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "missing")
	requireFaults(t, map[string]faultCase{
		"missing config": {
			args: []string{"--config", missing},
			want: []string{"the configuration file " + missing + " cannot be read: no such file or directory"},
		},
		"secret flag": {
			args: []string{"--nats-password", "s3cret"},
			want: []string{"--nats-password would show a secret to every user of the machine: " +
				"use IDP_NATS_PASSWORD or IDP_NATS_PASSWORD_FILE"},
		},
		"unknown flags": {
			args: []string{"--nats-ulr", "s3cret", "--zzz=s3cret", "-ps3cret", "--on"},
			want: []string{"--nats-ulr is not known (did you mean --nats-url?)", "--zzz is not known",
				"-p is not known: flags have two dashes"},
		},
		"flag without value": {args: []string{"--on", "--name"}, want: []string{"--name needs a value"}},
		"malformed flag":     {args: []string{"--=s3cret"}, want: []string{"the command line has a malformed flag"}},
		"argument": {
			args: []string{"--on", "false"}, want: []string{"the command line has an argument that is not a flag"},
		},
	})
}

func TestFaultsOfValues(t *testing.T) {
	t.Parallel()
	requireFaults(t, map[string]faultCase{
		"bad values": {
			environ: []string{"IDP_ON=s3cret", "IDP_COUNT=1.5", "IDP_SMALL=128", "IDP_NATURAL=-1", "IDP_RATIO=s3cret",
				"IDP_WAIT=30", "IDP_LEVEL=s3cret", "IDP_ROUTES=s3cret"},
			want: []string{
				"IDP_ON must be true or false", "IDP_COUNT must be a whole number, not too large",
				"IDP_SMALL must be a whole number, not too large",
				"IDP_NATURAL must be a whole number, not negative and not too large", "IDP_RATIO must be a number",
				"IDP_WAIT must be a duration such as 500ms, 30s or 1h30m",
				"IDP_ROUTES must be like name=value,other=value", "IDP_LEVEL has no valid value",
			},
		},
		"a bad value that a later layer would hide": {
			yaml: "count: s3cret\n", environ: []string{"IDP_COUNT=2"},
			want: []string{"idp.yaml:1 count must be a whole number, not too large"},
		},
		"same key in a map twice": {
			environ: []string{"IDP_ROUTES=a=1,a=2"}, want: []string{"IDP_ROUTES names a key twice"},
		},
		"no key in a map": {
			environ: []string{"IDP_ROUTES==s3cret"}, want: []string{"IDP_ROUTES must be like name=value,other=value"},
		},
		"what Validate says": {
			args: []string{"--listen=s3cret", "--nats-max-conns=0", "--nats-url="},
			want: []string{"listen must be host:port", "nats.max_conns must be positive", "nats.url must be set"},
		},
		"all layers": {
			yaml: "x: 1\n", environ: []string{"IDP_Y=1"}, args: []string{"--z", "--nats-max-conns=0"},
			want: []string{"idp.yaml:1: x is not known", "IDP_Y is not known", "--z is not known",
				"nats.max_conns must be positive"},
		},
	})
}

// Variables that Kubernetes and the project's own tests set are not taken for configuration.
func TestForeignVariables(t *testing.T) {
	t.Parallel()
	ignored := []string{
		"IDP_USERS_SERVICE_HOST=10.0.0.1", "IDP_USERS_SERVICE_PORT=80", "IDP_USERS_SERVICE_PORT_HTTP=80",
		"IDP_USERS_PORT=tcp://10.0.0.1:80",
		"IDP_USERS_PORT_80_TCP=tcp://10.0.0.1:80", "IDP_USERS_PORT_80_TCP_PROTO=tcp", "IDP_USERS_PORT_80_TCP_PORT=80",
		"IDP_USERS_PORT_80_TCP_ADDR=10.0.0.1", "IDP_X_PORT_53_UDP=udp://10.0.0.1:53",
		"IDP_IDENTITY_SOURCES_SERVICE_PORT_HTTP_ADMIN=9",
		"IDP_TEST_MONGO_URI=x", "IDP_BENCH_SIZE=1", "IDPX=1", "XIDP_A=1",
	}
	require.Equal(t, defaults(), load(t, config.Options{Environ: ignored}))
	require.Equal(t, 9, load(t, config.Options{Environ: []string{"IDP_PORT=9"}}).Port, "a declared variable is used")
	require.Equal(t, []string{"IDP_PORT must be a whole number, not too large"},
		faults(t, config.Options{Environ: []string{"IDP_PORT=tcp://10.0.0.1:80"}}), "also if Kubernetes set it")
	require.Equal(t, []string{"IDP_HTPT_PORT is not known"},
		faults(t, config.Options{Environ: []string{"IDP_HTPT_PORT=8080"}}))
}

func TestHelp(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--help"}, {"-h"}, {"--unknown", "--help"}, {"--name", "x", "-h", "--zzz"}} {
		cfg := defaults()
		require.ErrorIs(t, config.Load(&cfg, config.Options{Args: args}), config.ErrHelp)
	}
}

func TestErrorText(t *testing.T) {
	t.Parallel()
	err := &config.Error{Program: "idp-users", Faults: []string{"a", "b"}}
	require.EqualError(t, err, "idp-users: the configuration has 2 fault(s):\n  a\n  b")
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	cfg, before := defaults(), defaults()
	cfg.Key, cfg.Wait, cfg.Name = secret.New("s3cret"), time.Hour, "now"
	cfg.Routes["z"] = "y"
	cfg.NATS.URL = "nats://li:hush@h1,nats://li:hush@h2"
	byKey := map[string]config.Setting{}
	var keys []string
	for _, s := range config.Describe(&cfg, &before) {
		byKey[s.Key] = s
		keys = append(keys, s.Key)
	}
	require.Equal(t, []string{"listen", "nats.url", "nats.password", "nats.max_conns", "name", "on"}, keys[:6])
	require.Equal(t, config.Setting{Key: "name", Env: "IDP_NAME", Flag: "--name", Value: "now", Default: "default",
		Doc: "What to call it"}, byKey["name"])
	require.Equal(t, config.Setting{Key: "key", Env: "IDP_KEY", Value: "******", Doc: "Seals"}, byKey["key"])
	require.Equal(t, "nats://******@h1,nats://******@h2", byKey["nats.url"].Value)
	require.Equal(t, "1h", byKey["wait"].Value)
	require.Equal(t, "1s", byKey["wait"].Default)
	require.Equal(t, "a=b,z=y", byKey["routes"].Value)
	require.Equal(t, "a", byKey["hosts"].Value)
	require.Equal(t, "INFO", byKey["level"].Value)
	require.Equal(t, "--nats-max-conns", byKey["nats.max_conns"].Flag)
}

// Load reads the values that Describe shows.
func TestDescribedValuesLoad(t *testing.T) {
	t.Parallel()
	cfg, before := defaults(), defaults()
	cfg.Wait, cfg.Ratio, cfg.Level, cfg.On = 90*time.Minute, 1e-9, slog.LevelError+1, true
	var environ []string
	for _, s := range config.Describe(&cfg, &before) {
		environ = append(environ, s.Env+"="+s.Value)
	}
	require.Equal(t, cfg, load(t, config.Options{Environ: environ}))
}

func TestUsage(t *testing.T) {
	t.Parallel()
	cfg := defaults()
	cfg.Key = secret.New("s3cret")
	text := config.Usage("idp-x", &cfg)
	require.Contains(t, text, "  --nats-url, IDP_NATS_URL\n")
	require.Contains(t, text, "What to call it (default default)\n")
	require.Contains(t, text, "\n  IDP_KEY\n        Seals (default ******)\n")
	require.NotContains(t, text, "s3cret")
}

func TestInvalidStructs(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]any{
		"no tag": &struct{ A string }{},
		"capitals": &struct {
			A string `mapstructure:"Abc"`
		}{},
		"type": &struct {
			A chan int `mapstructure:"a"`
		}{},
		"numbers": &struct {
			A []int `mapstructure:"a"`
		}{},
		"pointer": &struct {
			A *string `mapstructure:"a"`
		}{},
		"same env": &struct {
			A string `mapstructure:"a_b"`
			B struct {
				C string `mapstructure:"b"`
			} `mapstructure:"a"`
		}{},
		"same key": &struct {
			A, B string `mapstructure:"a"`
		}{},
		"section and key": &struct {
			A string `mapstructure:"a"`
			B struct {
				C string `mapstructure:"c"`
			} `mapstructure:"a"`
		}{},
		"file of": &struct {
			A string `mapstructure:"a"`
			B string `mapstructure:"a_file"`
		}{},
		"config": &struct {
			A string `mapstructure:"config"`
		}{},
		"help": &struct {
			A string `mapstructure:"help"`
		}{},
		"named embed": &struct {
			Common `mapstructure:"common"`
		}{},
		"hidden embed": &struct {
			natsSettings `mapstructure:",squash"`
		}{},
	} {
		require.Panics(t, func() { _ = config.Load(cfg, config.Options{}) }, name)
	}
}

func FuzzFile(f *testing.F) {
	for _, seed := range []string{
		"", "name: x", "nats: {url: x}", "a: &a [*a]", "? {}\n: x", "<<: {name: x}", "--- !!set\n",
		"routes: {? [a] : b}", "\x00", "- x", "name: !!binary aGk=", "\xff\xfe",
	} {
		f.Add([]byte(seed))
	}
	path := filepath.Join(f.TempDir(), "idp.yaml")
	f.Fuzz(func(t *testing.T, content []byte) {
		require.NoError(t, os.WriteFile(path, content, 0o600))
		cfg := defaults()
		if err := config.Load(&cfg, config.Options{File: path}); err != nil {
			require.Equal(t, defaults(), cfg)
		}
	})
}

func FuzzArgsAndEnvironment(f *testing.F) {
	f.Add("--name=x", "--zzz", "IDP_NAME=x")
	f.Add("-x=y", "--", "IDP_=")
	f.Add("---", "-", "IDP_FILE=/dev/null")
	f.Add("--config", "", "IDP__FILE=x")
	f.Fuzz(func(t *testing.T, a, b, variable string) {
		if strings.Contains(variable, "_FILE=") || strings.Contains(variable, "CONFIG=") ||
			strings.Contains(a+b, "config") {
			return // would read an arbitrary file of the machine
		}
		cfg := defaults()
		err := config.Load(&cfg, config.Options{Args: []string{a, b}, Environ: []string{variable}})
		if err != nil {
			require.Equal(t, defaults(), cfg)
		}
	})
}
