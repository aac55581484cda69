package backup

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// Bounds of a manifest.
const (
	MaxManifestBytes = 32 << 20
	MaxFiles         = 150_000
	maxTextBytes     = 1 << 10
)

// manifestVersion is the number of the form. A later build adds fields that this one may pass over, or raises it.
const manifestVersion = 1

// File is a file of a checkpoint.
type File struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
	Hash Hash   `json:"sha256"` // of its object
}

// Manifest says what a base consists of, and which state it is. Sums and ids are in hexadecimal digits, as in names.
type Manifest struct {
	Version  int             `json:"version"`
	Cluster  Hex             `json:"cluster"`
	Epoch    uint64          `json:"epoch"`
	Member   Hex             `json:"member"` // the member that made it
	Index    consensus.Index `json:"index"`  // of the last entry applied
	Term     consensus.Term  `json:"term"`
	Revision kv.Revision     `json:"revision"`
	Since    consensus.Index `json:"since"` // where the chain began
	Sum      Hex             `json:"sum"`   // of the chain
	Level    level.Level     `json:"level"` // the feature level of the store
	Build    string          `json:"build"` // of the member, for operators
	Time     int64           `json:"time"`  // milliseconds since 1970: see Moment
	Files    []File          `json:"files"` // sorted by name
}

// Hex is a number that JSON tools must not take for a float.
type Hex uint64

// MarshalText implements encoding.TextMarshaler.
func (h Hex) MarshalText() ([]byte, error) { return fmt.Appendf(nil, number, uint64(h)), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *Hex) UnmarshalText(text []byte) error {
	n, ok := parseNumber(string(text))
	if !ok {
		return fmt.Errorf("%w: number %q", ErrDamaged, text)
	}
	*h = Hex(n)
	return nil
}

// MemberID is the member that made the base.
func (m *Manifest) MemberID() consensus.MemberID { return consensus.MemberID(m.Member) }

// Point is the point of the base.
func (m *Manifest) Point() Point { return Point{m.Index, uint64(m.Sum)} }

// Head is the state of the base.
func (m *Manifest) Head() Head { return Head{m.Epoch, m.Point(), Moment{m.Revision, m.Time}} }

// SizeBytes is the size of all files.
func (m *Manifest) SizeBytes() (total int64) {
	for i := range m.Files {
		total += m.Files[i].Size
	}
	return total
}

// Encode encodes a manifest and names it.
func (m *Manifest) Encode() (BaseName, []byte) {
	m.Version = manifestVersion
	content, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		panic(err) // a struct of numbers and texts
	}
	return BaseName{consensus.ClusterID(m.Cluster), m.Epoch, m.Point(), Moment{m.Revision, m.Time}, HashOf(content)}, content
}

// DecodeManifest reads a manifest that has a name.
func DecodeManifest(name *BaseName, content []byte) (*Manifest, error) {
	switch {
	case len(content) > MaxManifestBytes:
		return nil, fmt.Errorf("%w: a manifest of %d bytes", ErrDamaged, len(content))
	case HashOf(content) != name.Hash:
		return nil, fmt.Errorf("%w: the content has another hash than the name", ErrDamaged)
	}
	var m Manifest
	if err := json.Unmarshal(content, &m); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	switch {
	case m.Version > manifestVersion:
		return nil, fmt.Errorf("manifest of version %d: %w", m.Version, ErrLater)
	case m.Version < manifestVersion:
		return nil, fmt.Errorf("%w: there is no version %d", ErrDamaged, m.Version)
	case consensus.ClusterID(m.Cluster) != name.Cluster || m.Epoch != name.Epoch || m.Point() != name.Point ||
		Moment{m.Revision, m.Time} != name.Moment:
		return nil, fmt.Errorf("%w: it is of another state than its name says", ErrDamaged)
	case m.Level < level.First || !sensible(uint64(m.Since)) || len(m.Build) > maxTextBytes:
		return nil, fmt.Errorf("%w: level, since or build", ErrDamaged)
	}
	return &m, m.checkFiles()
}

func (m *Manifest) checkFiles() error {
	if len(m.Files) == 0 || len(m.Files) > MaxFiles {
		return fmt.Errorf("%w: %d files", ErrDamaged, len(m.Files))
	}
	total := uint64(0)
	for i := range m.Files {
		f := &m.Files[i]
		if !validFile(f.Name) || i > 0 && m.Files[i-1].Name >= f.Name || f.Size < 0 {
			return fmt.Errorf("%w: file %q of %d bytes", ErrDamaged, f.Name, f.Size)
		}
		if total += uint64(f.Size); total > maxNumber {
			return fmt.Errorf("%w: files of too many bytes", ErrDamaged)
		}
	}
	return nil
}

// validFile refuses what could lead out of a directory.
func validFile(name string) bool {
	return name != "" && name != "." && name != ".." && len(name) <= maxTextBytes && !strings.ContainsAny(name, "/\\\x00")
}

// SortFiles sorts files as a manifest has them.
func SortFiles(files []File) {
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
}

// Gap is a note that entries were applied and never shipped: between After and Until no point can be restored.
type Gap struct {
	Version int             `json:"version"`
	Cluster Hex             `json:"cluster"`
	Member  Hex             `json:"member"` // the member that gave up
	After   consensus.Index `json:"after"`  // the last entry before, of a segment or a base
	Until   consensus.Index `json:"until"`  // the first entry that is shipped again
	Time    int64           `json:"time"`   // milliseconds since 1970
	Reason  string          `json:"reason"`
}

// Encode encodes a gap and names it.
func (g *Gap) Encode() (GapName, []byte) {
	g.Version = manifestVersion
	content, err := json.MarshalIndent(g, "", " ")
	if err != nil {
		panic(err) // a struct of numbers and texts
	}
	return GapName{consensus.ClusterID(g.Cluster), g.After, g.Until, g.Time, HashOf(content)}, content
}

// DecodeGap reads a gap that has a name.
func DecodeGap(name *GapName, content []byte) (*Gap, error) {
	if len(content) > MaxGapBytes || HashOf(content) != name.Hash {
		return nil, fmt.Errorf("%w: the content has another hash than the name", ErrDamaged)
	}
	var g Gap
	if err := json.Unmarshal(content, &g); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	switch {
	case g.Version > manifestVersion:
		return nil, fmt.Errorf("gap of version %d: %w", g.Version, ErrLater)
	case g.Version < manifestVersion || consensus.ClusterID(g.Cluster) != name.Cluster || g.After != name.After ||
		g.Until != name.Until || g.Time != name.Time || len(g.Reason) > maxTextBytes:
		return nil, fmt.Errorf("%w: it says something else than its name", ErrDamaged)
	}
	return &g, nil
}

// MaxGapBytes bounds a note of a gap.
const MaxGapBytes = 4 << 10
