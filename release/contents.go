package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Item is a file of an archive or a package.
type Item struct {
	Path   string      // in a package
	Plain  string      // in an archive; empty: it is not there
	From   string      // where its content is now
	Mode   os.FileMode // zero: 0644
	Config bool        // the operator changes it, and keeps the changes
	Only   Kind        // that it is for one kind of package only; empty: for all
}

// items are the files of the packages and the archive for a target. They are sorted by their paths.
func (r *Release) items(ctx context.Context, target Target) ([]Item, error) {
	binary, err := r.binary(ctx, target)
	if err != nil {
		return nil, err
	}
	docs, err := r.documents(ctx)
	if err != nil {
		return nil, err
	}
	licenses, err := r.licenses(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(r.work, "items-")
	if err != nil {
		return nil, err
	}
	name, source := r.Product.Name, func(path string) string { return filepath.Join(r.Tree.Dir, path) }
	input := func(path string) string { return source(packaged + "/" + path) }
	const units, shared = "/usr/lib/systemd/system/", "/usr/share/"
	doc := shared + "doc/" + name + "/"
	all := []Item{
		{Path: "/usr/bin/" + name, Plain: name, From: binary, Mode: 0o755},
		{Path: "/etc/" + name + "/" + name + ".yaml", Plain: name + ".yaml", From: input(name + ".yaml"), Config: true},
		{Path: units + name + ".service", Plain: "systemd/" + name + ".service", From: input(name + ".service")},
		{Path: units + name + "@.service", Plain: "systemd/" + name + "@.service", From: input(name + "@.service")},
		{Path: "/usr/lib/sysusers.d/" + name + ".conf", Plain: "systemd/sysusers.conf", From: input("sysusers.conf")},
		{Path: shared + "bash-completion/completions/" + name, Plain: "completions/bash", From: filepath.Join(docs, "bash")},
		{Path: shared + "zsh/vendor-completions/_" + name, Plain: "completions/zsh", From: filepath.Join(docs, "zsh"),
			Only: Deb},
		{Path: shared + "zsh/site-functions/_" + name, From: filepath.Join(docs, "zsh"), Only: RPM},
		{Path: shared + "fish/vendor_completions.d/" + name + ".fish", Plain: "completions/fish",
			From: filepath.Join(docs, "fish")},
		{Path: shared + "lintian/overrides/" + name, From: input("lintian-overrides"), Only: Deb},
		{Path: doc + "LICENSE", Plain: "LICENSE", From: source("LICENSE"), Only: RPM},
	}
	pages, err := filepath.Glob(filepath.Join(docs, "man", "*.1"))
	if err != nil {
		return nil, err
	}
	squeezed := map[string]string{doc + "third-party-licenses.gz": licenses, doc + "changelog.gz": source("CHANGELOG.md")}
	for _, page := range pages {
		squeezed[shared+"man/man1/"+filepath.Base(page)+".gz"] = page
		all = append(all, Item{Plain: "man/" + filepath.Base(page), From: page})
	}
	all = append(all, Item{Plain: "third-party-licenses", From: licenses})
	for path, from := range squeezed {
		to := filepath.Join(dir, filepath.Base(path))
		if err := squeeze(to, from); err != nil {
			return nil, err
		}
		all = append(all, Item{Path: path, From: to})
	}
	debian, err := r.debianDocuments(dir)
	if err != nil {
		return nil, err
	}
	all = append(all, debian...)
	for i := range all {
		all[i].Mode = cmp.Or(all[i].Mode, 0o644)
	}
	slices.SortFunc(all, func(a, b Item) int { return strings.Compare(a.Path+a.Plain, b.Path+b.Plain) })
	return all, nil
}

// debianDocuments are the two documents that Debian wants in its own form.
func (r *Release) debianDocuments(dir string) ([]Item, error) {
	name, doc := r.Product.Name, "/usr/share/doc/"+r.Product.Name+"/"
	texts := map[string]string{
		"copyright": fmt.Sprintf(`Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: %s
Source: %s

Files: *
Copyright: %[4]d the authors of %[1]s
License: %[3]s
 On Debian systems, the text of the licence is in
 /usr/share/common-licenses/Apache-2.0. The licences of the modules that
 are in the program are in third-party-licenses.gz.
`, name, homepage, license, r.Time.Year()),
		"changelog.Debian": fmt.Sprintf(`%s (%s-1) stable; urgency=medium

  * Release %s. Its changes are in changelog.gz.

 -- %s  %s
`, name, r.Version.Packaged(), r.Version.Number(), maintainer, r.Time.Format("Mon, 02 Jan 2006 15:04:05 -0700")),
	}
	for file, text := range texts {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	packed := filepath.Join(dir, "changelog.Debian.gz")
	if err := squeeze(packed, filepath.Join(dir, "changelog.Debian")); err != nil {
		return nil, err
	}
	return []Item{
		{Path: doc + "copyright", From: filepath.Join(dir, "copyright"), Only: Deb},
		{Path: doc + "changelog.Debian.gz", From: packed, Only: Deb},
	}, nil
}

// squeeze compresses a file, without a name and a time in it.
func squeeze(to, from string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := w.Write(content); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(to, packed.Bytes(), 0o644)
}
