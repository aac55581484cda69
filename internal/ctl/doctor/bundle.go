package doctor

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/doctor"
)

// A bundle is a tar archive, packed by gzip, of three files: the manifest, which is the first one, what was collected, and the
// verdict at that time.
const (
	manifestFile  = "manifest.json"
	collectedFile = "collected.json"
	verdictFile   = "verdict.json"
	bundleFormat  = "quorate doctor bundle 1"
	// Bounds of a bundle that is read, of which a member's part is some ten KiB. Three bytes of a text become a message of
	// hundreds, so that these are counted, too.
	mostPacked    = 8 << 20
	mostManifest  = 64 << 10
	mostCollected = 4 << 20
	mostMessages  = 1 << 17
	mostShort     = 6 << 10 // of a member without its observation: three texts, and escapes in them
)

// manifest says what a bundle holds, and what not.
type manifest struct {
	Format   string   `json:"format"`
	MadeMS   int64    `json:"made_ms"`
	Build    string   `json:"build"`
	Sum      string   `json:"collected_sha256"`
	Members  []string `json:"members"`
	Silent   []string `json:"without_observation,omitempty"`
	LeftOut  []string `json:"left_out"`
	Verdicts int      `json:"findings"`
}

// leftOut is what no bundle has.
var leftOut = []string{"keys and values, and prefixes of them", "users, passwords, tokens and keys of TLS",
	"addresses of clients", "logs and configuration files of members", "metrics", "names of leases and of locks"}

// fits reports whether a text of what was collected is within the bounds.
func fits(text []byte) bool {
	return len(text) <= mostCollected && bytes.Count(text, []byte("{")) <= mostMessages
}

var asText = protojson.MarshalOptions{UseProtoNames: true, Multiline: true}

// textOf writes what was collected. Where all has no room the longest answers are left out.
func textOf(c *quoratepb.Collected) (*quoratepb.Collected, []byte, error) {
	c = proto.CloneOf(c)
	const indented = 8 // a line of a member within the list of them
	sizes, bytesOf, messages := make([][2]int, len(c.GetMembers())), 1<<10, 0
	for i, m := range c.GetMembers() {
		text, err := asText.Marshal(m)
		if err != nil {
			return nil, nil, err
		}
		sizes[i] = [2]int{len(text) + indented*(bytes.Count(text, []byte("\n"))+2), bytes.Count(text, []byte("{"))}
		bytesOf, messages = bytesOf+sizes[i][0], messages+sizes[i][1]
	}
	for bytesOf > mostCollected || messages > mostMessages-1 {
		longest := -1
		for i, m := range c.GetMembers() {
			if m.GetObservation() != nil && (longest < 0 || sizes[i][0] > sizes[longest][0]) {
				longest = i
			}
		}
		if longest < 0 {
			break
		}
		m := c.GetMembers()[longest]
		m.Observation, m.Fault, m.FaultText = nil, doctor.FaultLong, "its answer has no room in a bundle"
		bytesOf, messages = bytesOf-sizes[longest][0]+mostShort, messages-sizes[longest][1]+1
	}
	text, err := asText.Marshal(c)
	if err == nil && !fits(text) {
		err = fmt.Errorf("what was collected has more than %d MiB", mostCollected>>20)
	}
	return c, text, err
}

// manifestText writes a manifest, which names as many members as it has room for.
func manifestText(m *manifest) ([]byte, error) {
	for {
		text, err := json.MarshalIndent(m, "", "  ")
		if err != nil || len(text) <= mostManifest || len(m.Members)+len(m.Silent) == 0 {
			return text, err
		}
		m.Members, m.Silent = m.Members[:len(m.Members)/2], m.Silent[:len(m.Silent)/2]
	}
}

// writeBundle writes what was collected. The file appears once it is whole.
func writeBundle(path string, c *quoratepb.Collected) error {
	c, collected, err := textOf(c)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	found := doctor.Judge(c)
	sum := sha256.Sum256(collected)
	m := manifest{Format: bundleFormat, MadeMS: c.GetAtMs(), Build: config.Build(), Sum: hex.EncodeToString(sum[:]),
		LeftOut: leftOut, Verdicts: len(found)}
	for _, member := range c.GetMembers() {
		m.Members = append(m.Members, member.GetName())
		if member.GetObservation() == nil {
			m.Silent = append(m.Silent, member.GetName()+": "+member.GetFault())
		}
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	t := tar.NewWriter(z)
	for _, file := range []struct {
		name string
		make func() ([]byte, error)
	}{
		{manifestFile, func() ([]byte, error) { return manifestText(&m) }},
		{collectedFile, func() ([]byte, error) { return collected, nil }},
		{verdictFile, func() ([]byte, error) { return json.MarshalIndent(verdictOf(c, found, nil), "", "  ") }},
	} {
		content, err := file.make()
		if err == nil {
			err = t.WriteHeader(&tar.Header{Name: file.name, Mode: 0o600, Size: int64(len(content)),
				ModTime: time.UnixMilli(c.GetAtMs())})
		}
		if err == nil {
			_, err = t.Write(content)
		}
		if err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
	}
	if err := errors.Join(t.Close(), z.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return writeWhole(path, packed.Bytes())
}

// writeWhole writes a file beside its place, and puts it there once it is whole.
func writeWhole(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".quorate-doctor-*")
	if err != nil {
		return command.Refused(fmt.Errorf("write %s: %w", path, err))
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return command.Refused(fmt.Errorf("write %s: %w", path, errors.Join(err, os.Remove(f.Name()))))
	}
	return nil
}

// readBundle reads what was collected. The file may be anything.
func readBundle(path string) (*quoratepb.Collected, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, command.Refused(err)
	}
	defer f.Close()
	c, err := unpack(io.LimitReader(f, mostPacked))
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return nil, command.Refused(fmt.Errorf("%s is cut off: copy the bundle again", path))
	case err != nil:
		return nil, command.Refused(fmt.Errorf("%s is no bundle of `quorate doctor --bundle`: %w", path, err))
	}
	return doctor.Trimmed(c), nil
}

func unpack(in io.Reader) (*quoratepb.Collected, error) {
	z, err := gzip.NewReader(in)
	if err != nil {
		return nil, err
	}
	t := tar.NewReader(z)
	var m manifest
	text, err := nextFile(t, manifestFile, mostManifest)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &m); err != nil || m.Format != bundleFormat {
		return nil, fmt.Errorf("its manifest is of the format %.100q, and this program reads %q", m.Format, bundleFormat)
	}
	text, err = nextFile(t, collectedFile, mostCollected)
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != m.Sum {
		return nil, fmt.Errorf("%s is not what its manifest tells of", collectedFile)
	}
	if !fits(text) {
		return nil, fmt.Errorf("%s has more than %d messages", collectedFile, mostMessages)
	}
	c := &quoratepb.Collected{}
	// A bundle of a later build may have fields that this one does not know.
	return c, protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(text, c)
}

// nextFile reads the next file, which must have this name, and at most so many bytes.
func nextFile(t *tar.Reader, name string, most int64) ([]byte, error) {
	head, err := t.Next()
	switch {
	case err != nil:
		return nil, err
	case head.Name != name:
		return nil, fmt.Errorf("it has %.100q where %s should be", head.Name, name)
	case head.Size > most:
		return nil, fmt.Errorf("%s has more than %d KiB", name, most>>10)
	}
	return io.ReadAll(io.LimitReader(t, most))
}
