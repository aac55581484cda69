// Package consoletest shows pages of the console in tests, as a browser gets them, of clusters that tests make up.
//
// Conn is a member that answers what it is told to. Show renders a page of a console whose member it is. Healthy is what the
// members of a cluster observe in which nothing is wrong.
package consoletest
