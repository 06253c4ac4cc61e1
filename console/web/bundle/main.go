// Command bundle writes the console's files: TypeScript and styles, bundled and compressed, with hashed names. It is a
// module apart, so that no program links esbuild.
//
//	go run . -out ../../dist
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	web := flag.String("web", "..", "the folder with src and vendor")
	out := flag.String("out", "", "the folder to write; empty: only say how large the files are")
	maps := flag.Bool("maps", false, "for work on the console: readable names, and source maps")
	flag.Parse()
	if err := run(*web, *out, *maps); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(web, out string, maps bool) error {
	if err := checkVendor(filepath.Join(web, "vendor")); err != nil {
		return err
	}
	b, err := bundle(web, maps)
	if err != nil {
		return err
	}
	if out != "" {
		if err := b.write(out); err != nil {
			return err
		}
	}
	for _, language := range languages {
		first, all := b.sizes(language)
		fmt.Printf("console, %s: first screen %d bytes of script, all %d (gzip)\n", language, first, all)
	}
	return nil
}
