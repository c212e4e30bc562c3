! SPDX-License-Identifier: BSD-3-Clause
! Copyright (C) 2026 The Topiary authors
!
! topiary_phase(3) for Fortran: compile this file with the program, and link it with -ltopiary_phase. Modules that are
! compiled already are of one compiler and version only.
module topiary_phase
  use, intrinsic :: iso_c_binding, only: c_char, c_null_char
  implicit none
  private
  public :: topiary_phase_begin, topiary_phase_end, topiary_phase_mark

  interface
    subroutine c_begin(name) bind(C, name="topiary_phase_begin")
      import :: c_char
      character(kind=c_char), intent(in) :: name(*)
    end subroutine
    subroutine c_end(name) bind(C, name="topiary_phase_end")
      import :: c_char
      character(kind=c_char), intent(in) :: name(*)
    end subroutine
    subroutine c_mark(name) bind(C, name="topiary_phase_mark")
      import :: c_char
      character(kind=c_char), intent(in) :: name(*)
    end subroutine
  end interface

contains

  subroutine topiary_phase_begin(name)
    character(len=*), intent(in) :: name
    call c_begin(trim(name) // c_null_char)
  end subroutine

  subroutine topiary_phase_end(name)
    character(len=*), intent(in) :: name
    call c_end(trim(name) // c_null_char)
  end subroutine

  subroutine topiary_phase_mark(name)
    character(len=*), intent(in) :: name
    call c_mark(trim(name) // c_null_char)
  end subroutine
end module topiary_phase
