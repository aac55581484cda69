package main

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// mutations returns all mutations of some packages: folders from the root, or with /... and what is below. Tests, testdata and
// doc.go have none.
func mutations(root string, packages []string) ([]mutation, error) {
	var all []mutation
	for _, name := range packages {
		dir, below := strings.CutSuffix(path.Clean(strings.TrimPrefix(name, "./")), "/...")
		if !filepath.IsLocal(dir) {
			return nil, fmt.Errorf("--packages has %q: name folders of this module, with commas between", name)
		}
		before := len(all)
		err := fs.WalkDir(os.DirFS(root), dir, func(file string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && file != dir && (!below || entry.Name() == "testdata"):
				return fs.SkipDir
			case entry.IsDir() || !mutable(entry.Name()):
				return nil
			}
			source, err := os.ReadFile(filepath.Join(root, file))
			if err != nil {
				return err
			}
			found, err := enumerate(file, source)
			all = append(all, found...)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read the packages to mutate: %w; run it in the root of the repository", err)
		}
		if len(all) == before {
			return nil, fmt.Errorf("--packages has %q, where nothing can be mutated", name)
		}
	}
	return all, nil
}

func mutable(file string) bool {
	return strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, "_test.go") && file != "doc.go"
}

// at keeps the mutations of one place, a file or file:line.
func at(all []mutation, place string) []mutation {
	file, line, hasLine := strings.Cut(place, ":")
	return slices.DeleteFunc(all, func(m mutation) bool {
		return m.File != file || hasLine && strconv.Itoa(m.Line) != line
	})
}

// shuffle orders the mutations by a seed: a sample is the first of them that compile.
func shuffle(all []mutation, seed uint64) {
	chance := rand.New(rand.NewPCG(seed, 0))
	chance.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
}
