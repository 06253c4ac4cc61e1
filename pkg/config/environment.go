package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
)

const (
	fileSuffix  = "_FILE"
	fileEnv     = "IDP_CONFIG"
	maxFileSize = 1 << 20 // bytes, for every file that is read here
)

// Kubernetes sets these variables in every pod, for each Service of the namespace whose name starts with idp-. They
// are ignored.
var (
	serviceName = regexp.MustCompile(
		`_SERVICE_HOST$|_SERVICE_PORT(_[A-Z0-9_]+)?$|_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?$`)
	servicePort    = regexp.MustCompile(`_PORT$`) // only with a value that matches servicePortURL
	servicePortURL = regexp.MustCompile(`^(tcp|udp|sctp)://`)
)

// readEnvironment reads the variables that start with IDP_.
func readEnvironment(s *schema, environ []string) *layer {
	l := &layer{values: map[*field]written{}}
	variables := map[string]string{}
	var names []string
	for _, variable := range environ {
		if name, value, _ := strings.Cut(variable, "="); strings.HasPrefix(name, prefix) && value != "" {
			variables[name] = value
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		value := variables[name]
		if f := s.byEnv[name]; f != nil {
			l.values[f] = written{name, value}
			continue
		}
		if f := s.byEnv[strings.TrimSuffix(name, fileSuffix)]; f != nil {
			if variables[f.env] != "" {
				l.faults = append(l.faults, fmt.Sprintf("%s and %s are both set", f.env, name))
				continue
			}
			content, err := readBounded(value)
			if err != nil {
				l.faults = append(l.faults, fmt.Sprintf("%s: its file cannot be read: %s", name, err))
				continue
			}
			l.values[f] = written{name, strings.TrimRight(string(content), "\r\n")}
			continue
		}
		switch {
		case name == fileEnv:
			l.file = value
		case strings.HasPrefix(name, "IDP_TEST_"), strings.HasPrefix(name, "IDP_BENCH_"):
		case serviceName.MatchString(name), servicePort.MatchString(name) && servicePortURL.MatchString(value):
		default:
			known := []string{fileEnv}
			for env := range s.byEnv {
				known = append(known, env)
			}
			l.faults = append(l.faults, name+" is not known"+didYouMean(name, known, ""))
		}
	}
	return l
}

// readBounded reads a file of at most maxFileSize. Its errors do not repeat the path, which may be the secret itself,
// set by mistake.
func readBounded(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, withoutPath(err)
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxFileSize+1))
	if err != nil {
		return nil, withoutPath(err)
	}
	if len(content) > maxFileSize {
		return nil, fmt.Errorf("has more than %d bytes", maxFileSize)
	}
	return content, nil
}

func withoutPath(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}
