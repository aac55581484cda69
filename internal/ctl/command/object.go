package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"sigs.k8s.io/yaml"
)

// objectFormats are the outputs of commands whose answer is one message of the API.
var objectFormats = []string{"table", "json", "yaml"}

// NewObjectConnection is a connection whose commands print tables, JSON or YAML.
func NewObjectConnection(s Streams) *Connection {
	return &Connection{Streams: s, formats: objectFormats}
}

// Tabular reports whether a person reads the output.
func (c *Connection) Tabular() bool { return c.Output == "table" }

// PrintObject writes a message as JSON on one line or as YAML, with the names of its fields and all of them.
func (c *Connection) PrintObject(m proto.Message) error { return c.PrintFields(m, true) }

// PrintFields leaves out what is zero, that is unknown, unless it is to write all.
func (c *Connection) PrintFields(m proto.Message, all bool) error {
	raw, err := protojson.MarshalOptions{UseProtoNames: true, EmitDefaultValues: all}.Marshal(m)
	if err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	var line bytes.Buffer
	if err := json.Compact(&line, raw); err != nil { // protojson varies its spaces on purpose
		return fmt.Errorf("write the answer: %w", err)
	}
	line.WriteByte('\n')
	if c.Output == "yaml" {
		text, err := yaml.JSONToYAML(line.Bytes())
		if err != nil {
			return fmt.Errorf("write the answer: %w", err)
		}
		line.Reset()
		line.Write(text)
	}
	_, err = c.Streams.Out.Write(line.Bytes())
	return err
}

// Report is where a person follows what goes on: the output, unless that is reserved for a machine.
func (c *Connection) Report() io.Writer {
	if c.Tabular() {
		return c.Streams.Out
	}
	return c.Streams.Err
}
