// Package readindex is the bookkeeping of linearizable reads: the reads that wait at a leader for a round (Raft thesis, section
// 6.4), with the indexes that they need, and the answers of a majority that a reader counts by itself (PQR, HotStorage 2019).
// Why either gives a read index is said where they are used: reads.go and read_majority.go of package raft.
//
// The main types are Waiting and Majority. They send nothing and confirm no leader. Each belongs to one goroutine.
//
// Invariants:
//  1. Reads keep the order of arrival: none is answered before an earlier one of its kind.
//  2. An answer counts for the question that it names and for those before it, and for none that was not asked in this life
//     of the reader.
//  3. A majority counts answers under one configuration, of voters whose logs have all that they know of.
package readindex
