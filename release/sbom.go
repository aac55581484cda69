package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"golang.org/x/mod/modfile"
)

// makeSBOM writes which modules are in a binary, as the linker recorded it there. The tool cyclonedx-gomod has the same by
// asking the go command about the source, and looks for licences by comparing texts: it brings 41 modules, among them one
// of machine learning, and what it says of the source need not be what the linker took. The texts of the licences are in
// the packages.
func (r *Release) makeSBOM(ctx context.Context, target Target, path string) error {
	binary, err := r.binary(ctx, target)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	info, err := buildinfo.Read(bytes.NewReader(content))
	if err != nil {
		return err
	}
	var out bytes.Buffer
	encoder := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true)
	if err := encoder.EncodeVersion(r.bom(info, content, target), cdx.SpecVersion1_6); err != nil {
		return err
	}
	return os.WriteFile(path, out.Bytes(), 0o644)
}

func (r *Release) bom(info *debug.BuildInfo, binary []byte, target Target) *cdx.BOM {
	digest := sha256.Sum256(binary)
	bom := cdx.NewBOM()
	bom.SerialNumber = serialNumber(digest)
	main := cdx.Component{
		BOMRef: r.Product.Name, Type: cdx.ComponentTypeApplication, Name: r.Product.Name, Version: r.Version.Number(),
		PackageURL: purl(info.Main.Path, string(r.Version)),
		Hashes:     &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(digest[:])}},
		Licenses:   &cdx.Licenses{{License: &cdx.License{ID: license}}},
		Properties: &[]cdx.Property{{Name: "quorate:commit", Value: r.Tree.Commit}, {Name: "quorate:go", Value: info.GoVersion},
			{Name: "quorate:platform", Value: target.String()}, {Name: "quorate:dirty", Value: fmt.Sprint(r.Tree.Dirty)}},
	}
	bom.Metadata = &cdx.Metadata{Timestamp: r.Time.Format(time.RFC3339), Component: &main}
	components := []cdx.Component{{BOMRef: purl("std", info.GoVersion), Type: cdx.ComponentTypeLibrary, Name: "std",
		Version: info.GoVersion, PackageURL: purl("std", strings.TrimPrefix(info.GoVersion, "go"))}}
	for _, m := range modulesOf(info) {
		components = append(components, cdx.Component{BOMRef: purl(m.Path, m.Version), Type: cdx.ComponentTypeLibrary,
			Name: m.Path, Version: m.Version, PackageURL: purl(m.Path, m.Version),
			Properties: &[]cdx.Property{{Name: "quorate:go.sum", Value: m.Sum}}})
	}
	bom.Components = &components
	uses := []string{}
	for _, c := range components {
		uses = append(uses, c.BOMRef)
	}
	bom.Dependencies = &[]cdx.Dependency{{Ref: main.BOMRef, Dependencies: &uses}}
	return bom
}

// modulesOf are the modules in a binary, replacements in the place of what they replace, by path. Those that are replaced by a
// directory are of the repository, as the program is.
func modulesOf(info *debug.BuildInfo) []*debug.Module {
	var all []*debug.Module
	for _, m := range info.Deps {
		switch {
		case m.Replace == nil:
			all = append(all, m)
		case !modfile.IsDirectoryPath(m.Replace.Path):
			all = append(all, m.Replace)
		}
	}
	slices.SortFunc(all, func(a, b *debug.Module) int { return strings.Compare(a.Path, b.Path) })
	return all
}

func purl(path, version string) string {
	return "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
}

// serialNumber is an identity that follows from the binary, in the form of a UUID of version 8.
func serialNumber(digest [sha256.Size]byte) string {
	id := slices.Clone(digest[:16])
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}
