package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // registers itself
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm" // registers itself
)

func (r *Release) makeDeb(ctx context.Context, target Target, path string) error {
	return r.makePackage(ctx, Deb, target, path)
}

func (r *Release) makeRPM(ctx context.Context, target Target, path string) error {
	return r.makePackage(ctx, RPM, target, path)
}

func (r *Release) makePackage(ctx context.Context, kind Kind, target Target, path string) (err error) {
	items, err := r.items(ctx, target)
	if err != nil {
		return err
	}
	info := &nfpm.Info{
		Name: r.Product.Name, Arch: target.Arch, Platform: target.OS, Version: r.Version.Number(), Release: "1",
		Section: "database", Priority: "optional", Maintainer: maintainer, Vendor: "Quorate", Homepage: homepage,
		License: license,
		Description: summary + "\n" +
			"Quorate keeps small, precious data, such as the state of Kubernetes, on\n" +
			"several machines, and answers etcd's clients.\n" +
			"The package has the server, which is also the client, and units that\nrun it. It starts nothing by itself.",
		MTime: r.Time, DisableGlobbing: true,
	}
	for _, i := range items {
		if i.Path == "" || i.Only != "" && i.Only != kind {
			continue
		}
		content := &files.Content{Source: i.From, Destination: i.Path, Type: files.TypeFile,
			FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: i.Mode, MTime: r.Time}}
		if i.Config {
			content.Type = files.TypeConfigNoReplace
		}
		info.Contents = append(info.Contents, content)
	}
	script := func(name string) string { return filepath.Join(r.Tree.Dir, packaged, name) }
	info.Scripts = nfpm.Scripts{PostInstall: script("after-install.sh"), PreRemove: script("before-remove.sh"),
		PostRemove: script("after-remove.sh")}
	if kind == RPM {
		info.RPM = nfpm.RPM{Summary: summary, BuildHost: "reproducible", Group: "Applications/Databases", Compression: "gzip"}
		info.Depends = []string{"shadow-utils"}
	} else {
		// The scripts make the user by systemd's tool, or by that of passwd where systemd is not.
		info.Depends = []string{"passwd"}
		info.Recommends = []string{"ca-certificates"}
		info.Deb.Compression = "gzip"
	}
	return writePackage(string(kind), info, path)
}

// writePackage writes a package in a format. nfpm takes the name of the build host, the time and the owners from info: what
// is missing there would be that of this machine.
func writePackage(format string, info *nfpm.Info, path string) (err error) {
	info = nfpm.WithDefaults(info)
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return err
	}
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	slices.SortFunc(info.Contents, func(a, b *files.Content) int { return strings.Compare(a.Destination, b.Destination) })
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	return packager.Package(info, out)
}
