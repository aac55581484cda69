// Package pages runs the commands of documents for operators, as they stand, on machines of its own: Linux namespaces with the
// addresses of the documents, which need no right on the machine of the test.
package pages
