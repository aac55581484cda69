package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"
)

// Artifact is a file of a release.
type Artifact struct {
	Name   string
	Kind   Kind
	Target Target // of binaries and what has one binary
	Part   string // the name of the program beside the product, or of the chart; empty: of the product
	make   func(ctx context.Context, path string) error
}

func (a Artifact) mode() os.FileMode {
	if a.Kind == Binary {
		return 0o755
	}
	return 0o644
}

// artifacts are the files of a release, each after those that it is made from.
func (r *Release) artifacts() []Artifact {
	stem := r.Product.Name + "_" + r.Version.Number()
	var all []Artifact
	add := func(name string, kind Kind, target Target, make func(context.Context, Target, string) error) {
		a := r.artifact(name, kind, target, make)
		a.Part = ""
		all = append(all, a)
	}
	for _, t := range r.Product.Targets {
		name := stem + "_" + t.String()
		add(name, Binary, t, r.makeBinary)
		add(name+".cdx.json", SBOM, t, r.makeSBOM)
		add(name+".tar.gz", Archive, t, r.makeArchive)
		if t.OS == "linux" {
			add(name+".deb", Deb, t, r.makeDeb)
			add(name+".rpm", RPM, t, r.makeRPM)
		}
	}
	if slices.ContainsFunc(r.Product.Targets, func(t Target) bool { return t.OS == "linux" }) {
		add(stem+"_image.tar", Image, Target{}, r.makeImage)
	}
	for _, p := range r.Product.Beside {
		all = append(all, r.beside(p).programs()...)
	}
	all = append(all, r.charts()...)
	add(stem+"_provenance.json", Provenance, Target{}, r.makeProvenance)
	add(sumsName, Sums, Target{}, r.makeSums)
	return all
}

// programs are the files of a program that is released with another one.
func (r *Release) programs() (all []Artifact) {
	stem := r.Product.Name + "_" + r.Version.Number()
	for _, t := range r.Product.Targets {
		name := stem + "_" + t.String()
		all = append(all, r.artifact(name, Binary, t, r.makeBinary), r.artifact(name+".cdx.json", SBOM, t, r.makeSBOM))
	}
	if r.Product.Imaged {
		all = append(all, r.artifact(stem+"_image.tar", Image, Target{}, r.makeImage))
	}
	return all
}

// charts are the charts of the product, named as Helm names them, of the product's version.
func (r *Release) charts() (all []Artifact) {
	for _, dir := range r.Product.Charts {
		name := path.Base(dir)
		a := Artifact{Name: name + "-" + r.Version.Number() + ".tgz", Kind: Chart, Part: name}
		a.make = func(_ context.Context, to string) error { return r.makeChart(dir, to) }
		all = append(all, a)
	}
	return all
}

// artifact is a file of the program.
func (r *Release) artifact(name string, kind Kind, t Target, make func(context.Context, Target, string) error) Artifact {
	return Artifact{name, kind, t, r.Product.Name, func(ctx context.Context, path string) error { return make(ctx, t, path) }}
}

// into makes the files that wanted says in a directory. The last two are made of all others, which are made with them.
func (r *Release) into(ctx context.Context, dir string, wanted func(Artifact) bool) ([]Artifact, error) {
	all := r.artifacts()
	whole := slices.ContainsFunc(all, func(a Artifact) bool { return (a.Kind == Provenance || a.Kind == Sums) && wanted(a) })
	var made []Artifact
	for _, a := range all {
		if !whole && !wanted(a) {
			continue
		}
		begun := time.Now()
		if err := a.make(ctx, filepath.Join(dir, a.Name)); err != nil {
			return nil, fmt.Errorf("%s: %w", a.Name, err)
		}
		if err := os.Chmod(filepath.Join(dir, a.Name), a.mode()); err != nil { // whatever the umask is
			return nil, err
		}
		fmt.Fprintf(r.Log, "made %s in %v\n", a.Name, time.Since(begun).Round(100*time.Millisecond))
		made = append(made, a)
	}
	if len(made) == 0 {
		return nil, errors.New("no file of the release has such a name")
	}
	return made, nil
}

// Make makes a release in a directory that is absent or empty, which has all files or none.
func (r *Release) Make(ctx context.Context, out string, wanted func(Artifact) bool, sign func(dir string) error) (err error) {
	out, err = filepath.Abs(out)
	if err != nil {
		return err
	}
	if err := vacant(out); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return err
	}
	partial, err := os.MkdirTemp(filepath.Dir(out), "."+filepath.Base(out)+".partial-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(partial)) }()
	if err := os.Chmod(partial, 0o755); err != nil {
		return err
	}
	if _, err := r.into(ctx, partial, wanted); err != nil {
		return err
	}
	if err := sign(partial); err != nil {
		return err
	}
	if err := os.Remove(out); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.Rename(partial, out)
}

func vacant(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("--out %s: %w", dir, err)
	case len(entries) > 0:
		return fmt.Errorf("--out %s: is not empty: a release does not mix with other files", dir)
	}
	return nil
}
