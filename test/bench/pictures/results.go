package pictures

import (
	"encoding/json"
	"fmt"
	"io"
)

// Results are what was measured, for all pictures. Servers are in the order of the command line.
type Results struct {
	Date    string   `json:"date"`
	Command string   `json:"command"`
	Machine string   `json:"machine"`
	Others  float64  `json:"others_percent"` // of the machine's processor time, median: what other processes took
	Servers []Server `json:"servers"`
}

// Server is one server's part of the results.
type Server struct {
	Name    string    `json:"name"`
	Version string    `json:"version"`
	Curves  []Curve   `json:"throughput,omitempty"`
	Seconds *Timeline `json:"timeline,omitempty"`
	Parts   []Spent   `json:"cpu,omitempty"`
}

// Curve is throughput against clients, for one workload.
type Curve struct {
	Workload string  `json:"workload"`
	Points   []Point `json:"points"`
}

// Point is the throughput with so many clients: the median of rounds, the least, and the most.
type Point struct {
	Clients int     `json:"clients"`
	Median  float64 `json:"per_second"`
	Least   float64 `json:"least"`
	Most    float64 `json:"most"`
}

// Timeline is the latency of puts that were due in each second, in milliseconds, and what happened meanwhile.
type Timeline struct {
	Rate   float64   `json:"rate"` // puts due in a second
	Median []float64 `json:"p50_ms"`
	P99    []float64 `json:"p99_ms"`
	Failed int       `json:"failed"`
	Others []float64 `json:"others_percent"` // of the machine, what other processes took in each second
	Marks  []Mark    `json:"marks"`
}

// Mark is something that was asked for, from when until it was done, in seconds.
type Mark struct {
	What string  `json:"what"`
	From float64 `json:"from"`
	To   float64 `json:"to"`
}

// Spent is the processor time of all members for one operation of a workload, by part.
type Spent struct {
	Workload string  `json:"workload"`
	Clients  int     `json:"clients"`
	Parts    []Share `json:"parts"`
}

// Share is the time of one part in microseconds.
type Share struct {
	Part   string  `json:"part"`
	Micros float64 `json:"us_per_op"`
}

// Read reads results.
func Read(from io.Reader) (*Results, error) {
	r := &Results{}
	decoder := json.NewDecoder(from)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(r); err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	return r, nil
}

// Write writes results.
func (r *Results) Write(to io.Writer) error {
	encoder := json.NewEncoder(to)
	encoder.SetIndent("", " ")
	return encoder.Encode(r)
}

// notMeasured is Results.Others where it was not measured.
const notMeasured = -1
