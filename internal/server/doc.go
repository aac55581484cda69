// Package server is the composition root: it builds a member's parts from a configuration, ties them together, and
// owns the order in which they start and stop.
//
// It is not where anything is decided: consensus is package raft's, the loop package member's, the API package rpc's.
// Start returns once the member serves its clients; Stop hands leadership over first, then refuses new requests, lets
// running ones end, and closes what Start opened in reverse order. A Server that stops by itself (disk failure,
// removal from the cluster) closes Done and tells why in Err.
//
// Start, Stop, Done and Err may be called concurrently.
package server
