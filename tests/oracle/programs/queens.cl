; SPDX-License-Identifier: Apache-2.0
(defun safe (row placed &optional (distance 1))
  (or (null placed)
      (and (/= row (car placed)) (/= (abs (- row (car placed))) distance) (safe row (cdr placed) (1+ distance)))))

(defun queens (n k placed)
  (if (= k n) 1 (loop for row below n when (safe row placed) sum (queens n (1+ k) (cons row placed)))))

(defgeneric area (shape))
(defclass square () ((side :initarg :side :reader side)))
(defclass disc () ((radius :initarg :radius :reader radius)))
(defmethod area ((s square)) (expt (side s) 2))
(defmethod area ((s disc)) (* 355/113 (expt (radius s) 2)))

(compile 'safe)
(loop
  (queens 7 0 nil)
  (let ((table (make-hash-table :test 'equal)))
    (dotimes (i 2000) (push (area (if (oddp i) (make-instance 'square :side i) (make-instance 'disc :radius i))) (gethash (format nil "~r" (mod i 50)) table)))
    (sort (loop for list being the hash-values of table collect (reduce #'+ list)) #'<)))
