package figures

import (
	"encoding/json"
	"io"
)

// Record is a run as machines read it: what was measured, where, and every row of every round.
type Record struct {
	Date    string   `json:"date"`
	Machine string   `json:"machine"`
	Command string   `json:"command"` // that measures the same
	Servers []Server `json:"servers"` // in the order of the command line
	Rows    []Row    `json:"rows"`
}

// Server is what was measured.
type Server struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Write writes the record as JSON.
func (r *Record) Write(out io.Writer) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", " ")
	return encoder.Encode(r)
}

// MarshalJSON implements json.Marshaler: figures stand below the headings of their columns, and only those that there are.
func (f Row) MarshalJSON() ([]byte, error) {
	row := struct {
		Workload string             `json:"workload"`
		Server   string             `json:"server"`
		Round    int                `json:"round"`
		Figures  map[string]float64 `json:"figures"`
		Note     string             `json:"note,omitempty"`
	}{f.Workload, f.Server, f.Round, map[string]float64{}, f.Note}
	for _, k := range f.Known() {
		row.Figures[k.String()] = f.Values[k]
	}
	return json.Marshal(row)
}
