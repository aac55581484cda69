// Package pictures draws what a benchmark measured as SVG: throughput against clients, latency against time, and processor time
// by part. It measures nothing: Results are read from and written to JSON, and the same Results give the same bytes.
//
// The pictures need no font and no file of others; their colours follow the reader's light or dark theme.
//
// The main functions are Read, Results.Write and Draw.
package pictures
