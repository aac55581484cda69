package main

import (
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// licenseFile is how modules name the texts that everybody must pass on who passes on the program.
var licenseFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([.-].*)?$`)

// licenses writes the texts of the licences of all modules that are in the programs of a release. They are taken from the
// module cache, whose content go.sum pins. The standard library's is that of golang.org/x.
func (r *Release) licenses(ctx context.Context) (path string, err error) {
	path = filepath.Join(r.work, "third-party-licenses")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	used := map[string]bool{}
	for _, target := range r.Product.Targets {
		binary, err := r.binary(ctx, target)
		if err != nil {
			return "", err
		}
		info, err := buildinfo.ReadFile(binary)
		if err != nil {
			return "", err
		}
		for _, m := range modulesOf(info) {
			used[m.Path+"@"+m.Version] = true
		}
	}
	dirs, err := r.moduleDirs(ctx)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "Licences of the modules that are in the program. That of golang.org/x is that of Go's library, too.\n")
	for _, name := range sortedKeys(used) {
		if err := writeLicenses(&text, name, dirs[name]); err != nil {
			return "", err
		}
	}
	return path, os.WriteFile(path, []byte(text.String()), 0o644)
}

// moduleDirs says where the module cache has the modules of the repository.
func (r *Release) moduleDirs(ctx context.Context) (map[string]string, error) {
	out, err := r.Go.run(ctx, r.moduleDir(), Target{}, "list", "-m", "-json", "all")
	if err != nil {
		return nil, err
	}
	dirs := map[string]string{}
	for d := json.NewDecoder(strings.NewReader(out)); ; {
		type module struct {
			Path, Version, Dir string
			Replace            *module
		}
		var m module
		switch err := d.Decode(&m); {
		case errors.Is(err, io.EOF):
			return dirs, nil
		case err != nil:
			return nil, err
		}
		if m.Replace != nil {
			m = *m.Replace
		}
		dirs[m.Path+"@"+m.Version] = m.Dir
	}
}

func writeLicenses(text *strings.Builder, module, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("the licence of %s: %w", module, err)
	}
	fmt.Fprintf(text, "\n==== %s\n", module)
	found := false
	for _, entry := range entries {
		if entry.IsDir() || !licenseFile.MatchString(entry.Name()) {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return err
		}
		found = true
		fmt.Fprintf(text, "---- %s\n%s\n", entry.Name(), strings.TrimSpace(string(content)))
	}
	if !found {
		fmt.Fprintf(text, "The module has no file with a licence.\n")
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
