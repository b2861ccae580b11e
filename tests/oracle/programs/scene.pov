// SPDX-License-Identifier: Apache-2.0
camera { location <0, 3, -8> look_at 0 }
light_source { <10, 20, -10> rgb 1 area_light <2, 0, 0>, <0, 0, 2>, 4, 4 }
plane { y, -1 pigment { checker rgb 1, rgb 0.2 } finish { reflection 0.3 } }
#declare I = 0;
#while (I < 40) sphere { <sin(I) * 3, mod(I, 3), cos(I) * 3>, 0.5 pigment { rgb <mod(I, 2), 0.5, mod(I, 3) / 2> } finish { reflection 0.4 phong 1 } } #declare I = I + 1; #end
