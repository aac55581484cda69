package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/blakesmith/ar"
	"github.com/sassoftware/go-rpmutils"
	"github.com/sassoftware/go-rpmutils/cpio"
	"go.yaml.in/yaml/v3"
)

// Claim is what a file of a release says of itself. Its name counts for nothing: users rename files.
type Claim struct {
	Kind    Kind
	Target  Target
	Part    string // as an artifact has it
	Commit  string
	Version Version
	Go      string    // go1.26.8
	Time    time.Time // zero: it has no time
	Dirty   bool
}

// errNoRelease is for files that are nothing of a release.
var errNoRelease = errors.New("is no file of a release: it names no commit that it was made from")

// A claim may name no more than this, for it reaches git and the go command.
var (
	commits    = regexp.MustCompile(`^[0-9a-f]{40}$`)
	toolchains = regexp.MustCompile(`^go1\.\d+(\.\d+)?$`)
)

// most bounds what is read of a file that somebody gave, and again what is unpacked of it.
const most = 256 << 20

// bounded reads so much of a stream and then fails: what is skipped counts, too.
type bounded struct {
	io.Reader
	left int64
}

var errLarge = fmt.Errorf("it is, or unpacks to, more than %d MiB", most>>20)

// within begins the bound of a stream.
func within(r io.Reader) *bounded { return &bounded{r, most} }

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errLarge
	}
	n, err := b.Reader.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// claimOf reads what a file says. It runs nothing.
func claimOf(at string, p Product) (Claim, error) {
	file, err := os.Open(at)
	if err != nil {
		return Claim{}, err
	}
	defer func() { _ = file.Close() }()
	in := bufio.NewReader(file)
	first, err := in.Peek(8)
	if err != nil {
		return Claim{}, errNoRelease
	}
	read := readers[magic(first)]
	if read == nil {
		return Claim{}, errNoRelease
	}
	claim, err := read(within(in), p)
	switch {
	case err != nil && !errors.Is(err, errNoRelease):
		return Claim{}, fmt.Errorf("is damaged: %w", err)
	case err != nil:
		return Claim{}, err
	}
	return claim, claim.check()
}

// check wants the forms of a commit, a version and a toolchain.
func (c Claim) check() error {
	switch version, err := parseVersion(string(c.Version)); {
	case !commits.MatchString(c.Commit) || c.Version == "" || c.Go == "":
		return errNoRelease
	case err != nil || version != c.Version:
		return fmt.Errorf("names the version %q, which is none of a release", c.Version)
	case !toolchains.MatchString(c.Go):
		return fmt.Errorf("names the toolchain %q, which is no release of Go", c.Go)
	}
	return nil
}

// mostChartFile bounds the file of a chart that somebody gave.
const mostChartFile = 1 << 20

var readers = map[string]func(io.Reader, Product) (Claim, error){
	"elf": claimOfBinary, "mach-o": claimOfBinary, "gzip": claimOfArchive, "ar": claimOfDeb, "rpm": claimOfRPM,
	"json": claimOfJSON, "tar": claimOfImage,
}

// magic names the format that bytes begin.
func magic(first []byte) string {
	for start, format := range map[string]string{"\x7fELF": "elf", "\xcf\xfa\xed\xfe": "mach-o", "\x1f\x8b": "gzip",
		"!<arch>\n": "ar", "\xed\xab\xee\xdb": "rpm", "{\n": "json", "oci-layo": "tar"} {
		if bytes.HasPrefix(first, []byte(start)) {
			return format
		}
	}
	return ""
}

func claimOfBinary(in io.Reader, p Product) (Claim, error) {
	content, err := io.ReadAll(in)
	if err != nil {
		return Claim{}, err
	}
	info, err := buildinfo.Read(bytes.NewReader(content))
	if err != nil {
		return Claim{}, errNoRelease
	}
	return claimOfInfo(info, p), nil
}

// claimOfInfo reads what the go command wrote into a program. Its version is the tag that it found at the commit.
func claimOfInfo(info *debug.BuildInfo, p Product) Claim {
	set := map[string]string{}
	for _, s := range info.Settings {
		set[s.Key] = s.Value
	}
	version, _, _ := strings.Cut(info.GoVersion, " ")
	c := Claim{Kind: Binary, Target: Target{set["GOOS"], set["GOARCH"]}, Commit: set["vcs.revision"], Go: version,
		Dirty: set["vcs.modified"] == "true"}
	part, known := p.programAt(info.Path)
	if !known || !commits.MatchString(c.Commit) {
		return Claim{}
	}
	c.Part = part
	if tag, err := parseVersion(info.Main.Version); err == nil {
		c.Version = tag
	} else if at, err := time.Parse(time.RFC3339, set["vcs.time"]); err == nil {
		c.Version = snapshotOf(c.Commit, at)
	}
	return c
}

func claimOfArchive(in io.Reader, p Product) (Claim, error) { return claimInTar(in, p, Archive) }

// claimInTar finds the program in a compressed tar.
func claimInTar(in io.Reader, p Product, kind Kind) (Claim, error) {
	packed, err := gzip.NewReader(in)
	if err != nil {
		return Claim{}, err
	}
	for r := tar.NewReader(within(packed)); ; {
		header, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return Claim{}, errNoRelease
		case err != nil:
			return Claim{}, err
		case kind == Archive && header.Typeflag == tar.TypeReg && path.Base(header.Name) == chartFile:
			return claimOfChart(r, path.Dir(header.Name))
		case header.Typeflag == tar.TypeReg && path.Base(header.Name) == p.Name && header.Mode&0o111 != 0:
			c, err := claimOfBinary(r, p)
			c.Kind, c.Time = kind, header.ModTime
			return c, err
		}
	}
}

func claimOfDeb(in io.Reader, p Product) (Claim, error) {
	for r := ar.NewReader(in); ; {
		header, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return Claim{}, errNoRelease
		case err != nil:
			return Claim{}, err
		case strings.TrimSuffix(header.Name, "/") == "data.tar.gz":
			return claimInTar(r, p, Deb)
		}
	}
}

func claimOfRPM(in io.Reader, p Product) (Claim, error) {
	r, err := rpmutils.ReadRpm(in)
	if err != nil {
		return Claim{}, err
	}
	infos, err := r.Header.GetFiles()
	if err != nil {
		return Claim{}, err
	}
	for _, info := range infos {
		if path.Base(info.Name()) == p.Name && info.Mode()&0o111 != 0 && info.Mode()&0o170000 == 0o100000 {
			c, err := claimInPayload(in, info.Name(), p)
			c.Kind, c.Time = RPM, time.Unix(int64(info.Mtime()), 0)
			return c, err
		}
	}
	return Claim{}, errNoRelease
}

// claimInPayload finds the program of a name in the payload of an rpm, which a release packs with gzip.
func claimInPayload(in io.Reader, name string, p Product) (Claim, error) {
	packed, err := gzip.NewReader(in)
	if err != nil {
		return Claim{}, err
	}
	for files := cpio.NewReader(within(packed)); ; {
		header, err := files.Next()
		switch {
		case errors.Is(err, io.EOF):
			return Claim{}, errNoRelease
		case err != nil:
			return Claim{}, err
		case strings.TrimPrefix(header.Filename(), ".") == name:
			return claimOfBinary(files, p)
		}
	}
}

// claimOfJSON reads a bill of materials or a statement of provenance.
func claimOfJSON(in io.Reader, p Product) (Claim, error) {
	var both struct {
		Statement
		cdx.BOM
	}
	if err := json.NewDecoder(in).Decode(&both); err != nil {
		return Claim{}, err
	}
	if both.PredicateType == predicateType {
		definition := both.Predicate.BuildDefinition
		seconds, err := strconv.ParseInt(definition.ExternalParameters["sourceDateEpoch"], 10, 64)
		if err != nil || definition.BuildType != buildType {
			return Claim{}, errNoRelease
		}
		return Claim{Kind: Provenance, Commit: definition.ExternalParameters["commit"], Go: definition.InternalParameters["go"],
			Version: Version(definition.ExternalParameters["version"]), Time: time.Unix(seconds, 0),
			Dirty: definition.InternalParameters["dirty"] == "true"}, nil
	}
	if both.Metadata == nil || both.Metadata.Component == nil || both.Metadata.Component.Properties == nil {
		return Claim{}, errNoRelease
	}
	set := map[string]string{}
	for _, property := range *both.Metadata.Component.Properties {
		set[strings.TrimPrefix(property.Name, p.Name+":")] = property.Value
	}
	system, arch, _ := strings.Cut(set["platform"], "_")
	at, err := time.Parse(time.RFC3339, both.Metadata.Timestamp)
	return Claim{Kind: SBOM, Target: Target{system, arch}, Part: p.partOf(both.Metadata.Component.Name), Commit: set["commit"],
		Go: set["go"], Time: at,
		Version: Version("v" + both.Metadata.Component.Version), Dirty: set["dirty"] == "true"}, err
}

// claimOfImage reads the annotations of the index in a layout.
func claimOfImage(in io.Reader, p Product) (Claim, error) {
	const prefix = "org.opencontainers.image."
	for r := tar.NewReader(in); ; {
		header, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return Claim{}, errNoRelease
		case err != nil:
			return Claim{}, err
		case !strings.HasPrefix(header.Name, "blobs/") || header.Size > 1<<20:
			continue
		}
		var index struct{ Annotations map[string]string }
		if json.NewDecoder(r).Decode(&index) != nil || index.Annotations[goAnnotation] == "" {
			continue
		}
		set := index.Annotations
		at, err := time.Parse(time.RFC3339, set[prefix+"created"])
		return Claim{Kind: Image, Part: p.partOf(set[prefix+"title"]), Commit: set[prefix+"revision"],
			Version: Version(set[prefix+"version"]),
			Go:      set[goAnnotation], Time: at, Dirty: set[dirtyAnnotation] == "true"}, err
	}
}

// claimOfChart reads the file of a chart.
func claimOfChart(in io.Reader, name string) (Claim, error) {
	var about struct {
		Version     string
		Annotations map[string]string
	}
	if err := yaml.NewDecoder(io.LimitReader(in, mostChartFile)).Decode(&about); err != nil {
		return Claim{}, err
	}
	set := about.Annotations
	at, err := time.Parse(time.RFC3339, set[timeAnnotation])
	if err != nil || set[commitAnnotation] == "" {
		return Claim{}, errNoRelease
	}
	return Claim{Kind: Chart, Part: name, Commit: set[commitAnnotation], Version: Version("v" + about.Version),
		Go: set[goAnnotation], Time: at, Dirty: set[dirtyAnnotation] == "true"}, nil
}
