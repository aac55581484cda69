package ctl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"sigs.k8s.io/yaml"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/ctl/progress"
)

// objectFormats are the outputs of commands whose answer is one message of the API.
var objectFormats = []string{"table", "json", "yaml"}

// tabular reports whether a person reads the output.
func (c *connection) tabular() bool { return c.output == "table" }

// printObject writes a message as JSON on one line or as YAML, with the names of its fields and all of them.
func (c *connection) printObject(m proto.Message) error { return c.printFields(m, true) }

// printFields leaves out what is zero, that is unknown, unless it is to write all.
func (c *connection) printFields(m proto.Message, all bool) error {
	raw, err := protojson.MarshalOptions{UseProtoNames: true, EmitDefaultValues: all}.Marshal(m)
	if err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	var line bytes.Buffer
	if err := json.Compact(&line, raw); err != nil { // protojson varies its spaces on purpose
		return fmt.Errorf("write the answer: %w", err)
	}
	line.WriteByte('\n')
	if c.output == "yaml" {
		text, err := yaml.JSONToYAML(line.Bytes())
		if err != nil {
			return fmt.Errorf("write the answer: %w", err)
		}
		line.Reset()
		line.Write(text)
	}
	_, err = c.streams.Out.Write(line.Bytes())
	return err
}

// report is where a person follows what goes on: the output, unless that is reserved for a machine.
func (c *connection) report() io.Writer {
	if c.tabular() {
		return c.streams.Out
	}
	return c.streams.Err
}

// configText names a configuration as the log does: index, term, stage.
func configText(id *quoratepb.ConfigID) string {
	return consensus.ConfigID{
		Index: consensus.Index(id.GetIndex()), Term: consensus.Term(id.GetTerm()), Stage: uint8(id.GetStage()),
	}.String()
}

// roleText is a role as people write it: voter.
func roleText(r quoratepb.Role) string {
	return strings.ToLower(strings.TrimPrefix(r.String(), "ROLE_"))
}

// quorumText says how many of the voters must agree, in both sets of a joint configuration.
func quorumText(s *quoratepb.Strength) string {
	text := fmt.Sprintf("%d of %d", s.GetQuorum(), s.GetVoters())
	if s.GetOutgoing() > 0 {
		text += fmt.Sprintf(" and %d of %d", s.GetOutgoingQuorum(), s.GetOutgoing())
	}
	return text
}

func superquorumText(s *quoratepb.Strength) string {
	return fmt.Sprintf("%d of %d", s.GetSuperquorum(), s.GetVoters())
}

// toleranceText says how many more voters may fail before writes stop.
func toleranceText(s *quoratepb.Strength) string {
	if s.GetTolerates() < 0 {
		return "no writes: " + count(-int(s.GetTolerates()), "voter") + " missing"
	}
	return count(int(s.GetTolerates()), "failure")
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// memberName names a member of a cluster by its id, with its name if it has one.
func memberName(cluster *quoratepb.Cluster, id uint64) string {
	for _, m := range cluster.GetMembers() {
		if m.Id == id {
			return progress.Name(m)
		}
	}
	return hexID(id)
}
