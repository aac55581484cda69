package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Release is a version of a product made from a tree. Its methods are for one goroutine.
type Release struct {
	Product Product
	Tree    *Tree
	Version Version
	Time    time.Time // of everything that has a time
	Go      *golang
	Log     io.Writer // a line for each file that is made

	work  string            // a directory for what is no file of the release
	built map[Target]string // binaries
	begun *bool             // what is made before binaries is there
	docs  string            // manual pages and completions; empty until they are made
}

// Options say what to make of which commit.
type Options struct {
	Repo      string
	Commit    string // empty: that of the working tree
	Version   Version
	Toolchain string // empty: the one that is installed
	Dirty     bool
}

// open prepares a release in a directory for work. Without a version it is that of the tag at the commit, and without a tag
// that of the commit.
func open(ctx context.Context, p Product, o Options, work string, log io.Writer) (*Release, error) {
	tree, err := lookAt(ctx, o.Repo, o.Commit, o.Dirty)
	if err != nil {
		return nil, err
	}
	if o.Version == "" {
		tag, err := tree.tagged(ctx)
		if err != nil {
			return nil, err
		}
		if o.Version = Version(tag); tag == "" {
			o.Version = snapshotOf(tree.Commit, tree.Time)
		}
	}
	if snapshot := snapshotOf(tree.Commit, tree.Time); o.Version.Tag() == "" && o.Version != snapshot {
		return nil, fmt.Errorf("--version %s: the version of this commit, which is no release, is %s", o.Version, snapshot)
	}
	r := &Release{Product: p, Tree: tree, Version: o.Version, Time: tree.Time, Log: log, work: work,
		built: map[Target]string{}, begun: new(bool)}
	if epoch := os.Getenv("SOURCE_DATE_EPOCH"); epoch != "" {
		seconds, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil || seconds < 0 {
			return nil, fmt.Errorf("SOURCE_DATE_EPOCH=%s is no number of seconds since 1970", epoch)
		}
		r.Time = time.Unix(seconds, 0).UTC()
	}
	if r.Go, err = newGolang(ctx, o.Toolchain); err != nil {
		return nil, err
	}
	return r, tree.clone(ctx, work, p.tags(o.Version))
}

// beside is the release of a program that is released with this one: of the same tree, version, time and toolchain.
func (r *Release) beside(p Product) *Release {
	other := *r
	p.Before = r.Product.Before // its packages may embed what that makes
	other.Product, other.built = p, map[Target]string{}
	if r.work != "" {
		other.work = filepath.Join(r.work, "beside", p.Name)
	}
	return &other
}

// host is the platform on which this program runs.
func host() Target { return Target{runtime.GOOS, runtime.GOARCH} }

// linkerFlags set the version, and leave out the symbols for debuggers, which are a third of a binary; stacks and profiles keep
// their names.
func (r *Release) linkerFlags() string {
	return strings.Join([]string{"-s", "-w", "-X", r.Product.Variable + "=" + r.Version.Number()}, " ")
}
