//go:build linux

package main

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// image is a base image.
type image struct {
	name    string
	folders []string          // that anybody may write into
	files   map[string]string // from the machine: file or folder in the image → on the machine
	texts   map[string]string
	links   map[string]string
	changes []string // instructions of a Dockerfile
}

const (
	authorities = "/etc/ssl/certs/ca-certificates.crt"
	zones       = "/usr/share/zoneinfo"
)

// baseImages are stand-ins for the images that the Dockerfile and docker-compose.yml name, with what those use of them.
func baseImages(ctx context.Context, programs string) ([]image, error) {
	root, err := output(ctx, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	modules, err := output(ctx, "go", "env", "GOPROXY")
	if err != nil {
		return nil, err
	}
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		return nil, err
	}
	list, err := output(ctx, busybox, "--list")
	if err != nil {
		return nil, err
	}
	shell := map[string]string{}
	for _, name := range strings.Fields(list) {
		if name != "busybox" {
			shell["bin/"+name] = "busybox"
		}
	}
	return []image{{
		name: "golang:1.26", folders: []string{"tmp"}, links: shell,
		texts:   map[string]string{"etc/passwd": "root:x:0:0:root:/root:/bin/sh\n"}, // HOME, where the cache is
		files:   map[string]string{"bin/busybox": busybox, "usr/local/go": root, authorities[1:]: authorities},
		changes: []string{"ENV PATH=/usr/local/go/bin:/bin GOPATH=/go GOTOOLCHAIN=local GOPROXY=" + modules},
	}, {
		name: "gcr.io/distroless/static-debian12:nonroot", folders: []string{"tmp", "home/nonroot"},
		files: map[string]string{authorities[1:]: authorities, zones[1:]: zones},
		texts: map[string]string{"etc/passwd": "root:x:0:0:root:/root:/sbin/nologin\n" +
			"nonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n", "etc/group": "nonroot:x:65532:\n"},
		changes: []string{"ENV PATH=/bin SSL_CERT_FILE=" + authorities, "USER 65532", "WORKDIR /home/nonroot"},
	}, {
		name: "nats:2.15-alpine", folders: []string{"tmp"}, links: shell,
		files:   map[string]string{"bin/busybox": busybox, "bin/nats-server": filepath.Join(programs, "nats-server")},
		changes: []string{"ENV PATH=/bin"},
	}, {
		name: "mongo:8", folders: []string{"tmp"}, links: map[string]string{"bin/mongosh": "mongod"},
		files:   map[string]string{"bin/mongod": filepath.Join(programs, "tools/mongod")},
		changes: []string{"ENV PATH=/bin", `ENTRYPOINT ["mongod"]`, "VOLUME /data/db"},
	}}, nil
}

// load makes the image known to the engine.
func (i image) load(ctx context.Context) error {
	args := []string{"import"}
	for _, change := range i.changes {
		args = append(args, "--change", change)
	}
	cmd := exec.CommandContext(ctx, "docker", append(args, "-", i.name)...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	err = errors.Join(i.write(in), in.Close(), cmd.Wait())
	if err != nil {
		return fmt.Errorf("image %s: %w", i.name, err)
	}
	return nil
}

func (i image) write(w io.Writer) error {
	t := tar.NewWriter(w)
	for _, name := range i.folders {
		if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: 0o1777}); err != nil {
			return err
		}
	}
	for name, text := range i.texts {
		if err := t.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			return err
		}
		if _, err := io.WriteString(t, text); err != nil {
			return err
		}
	}
	for name, target := range i.links {
		if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target}); err != nil {
			return err
		}
	}
	for name, source := range i.files {
		if err := copyTree(t, name, source); err != nil {
			return err
		}
	}
	return t.Close()
}

// copyTree adds a file or folder of the machine.
func copyTree(t *tar.Writer, name, source string) error {
	source, err := filepath.EvalSymlinks(source)
	if err != nil {
		return err
	}
	return filepath.WalkDir(source, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		link := ""
		if info.Mode().Type() == fs.ModeSymlink {
			if link, err = os.Readlink(file); err != nil {
				return err
			}
		}
		header, err := tar.FileInfoHeader(info, link)
		if err != nil {
			return err
		}
		header.Name = path.Join(name, filepath.ToSlash(strings.TrimPrefix(file, source)))
		header.Uid, header.Gid, header.Uname, header.Gname = 0, 0, "", ""
		if err := t.WriteHeader(header); err != nil || !info.Mode().IsRegular() {
			return err
		}
		content, err := os.Open(file)
		if err != nil {
			return err
		}
		defer content.Close()
		_, err = io.Copy(t, content)
		return err
	})
}
